"""BibTeX of the papers behind the parts of a report."""

SALIERI = """@article{lu2024salieri,
  title = {{AI} as {H}umanity's {S}alieri: Quantifying Linguistic Creativity of Language Models via
           Systematic Attribution of Machine Text against Web Text},
  author = {Lu, Ximing and Sclar, Melanie and Hallinan, Skyler and Mireshghallah, Niloofar and
            Liu, Jiacheng and Han, Seungju and Ettinger, Allyson and Jiang, Liwei and
            Chandu, Khyathi and Dziri, Nouha and Choi, Yejin},
  journal = {arXiv preprint arXiv:2410.04265},
  year = {2024}
}"""
TTCW = """@inproceedings{chakrabarty2024art,
  title = {Art or Artifice? {L}arge Language Models and the False Promise of Creativity},
  author = {Chakrabarty, Tuhin and Laban, Philippe and Agarwal, Divyansh and Muresan, Smaranda and
            Wu, Chien-Sheng},
  booktitle = {Proceedings of the CHI Conference on Human Factors in Computing Systems},
  year = {2024}
}"""
LINGUISTIC = """@inproceedings{roemmele2017evaluating,
  title = {Evaluating Story Generation Systems Using Automated Linguistic Analyses},
  author = {Roemmele, Melissa and Gordon, Andrew S. and Swanson, Reid},
  booktitle = {SIGKDD 2017 Workshop on Machine Learning for Creativity},
  year = {2017}
}"""
FEEDBACK = """@inproceedings{rashkin2025help,
  title = {Help Me Write a Story: Evaluating {LLM}s' Ability to Generate Writing Feedback},
  author = {Rashkin, Hannah and Clark, Elizabeth and Huot, Fantine and Lapata, Mirella},
  booktitle = {Proceedings of the Annual Meeting of the Association for Computational Linguistics},
  year = {2025}
}"""
MTLD = """@article{mccarthy2010mtld,
  title = {{MTLD}, vocd-{D}, and {HD}-{D}: A validation study of sophisticated approaches to lexical
           diversity assessment},
  author = {McCarthy, Philip M. and Jarvis, Scott},
  journal = {Behavior Research Methods},
  volume = {42},
  pages = {381--392},
  year = {2010}
}"""
PPI = """@article{angelopoulos2023ppi,
  title = {{PPI++}: Efficient Prediction-Powered Inference},
  author = {Angelopoulos, Anastasios N. and Duchi, John C. and Zrnic, Tijana},
  journal = {arXiv preprint arXiv:2311.01453},
  year = {2023}
}"""
