"""The paragraph for a paper: what was measured and how, with references."""

from __future__ import annotations

from collections.abc import Sequence

from fabula import __version__
from fabula.instruments import SET, Instrument
from fabula.review import Review
from fabula.types import PARTS, Part, Signature

__all__ = ["bibtex_of", "methods_of"]

_SALIERI = """@article{lu2024salieri,
  title = {{AI} as {H}umanity's {S}alieri: Quantifying Linguistic Creativity of Language Models via
           Systematic Attribution of Machine Text against Web Text},
  author = {Lu, Ximing and Sclar, Melanie and Hallinan, Skyler and Mireshghallah, Niloofar and
            Liu, Jiacheng and Han, Seungju and Ettinger, Allyson and Jiang, Liwei and
            Chandu, Khyathi and Dziri, Nouha and Choi, Yejin},
  journal = {arXiv preprint arXiv:2410.04265},
  year = {2024}
}"""
_TTCW = """@inproceedings{chakrabarty2024art,
  title = {Art or Artifice? {L}arge Language Models and the False Promise of Creativity},
  author = {Chakrabarty, Tuhin and Laban, Philippe and Agarwal, Divyansh and Muresan, Smaranda and
            Wu, Chien-Sheng},
  booktitle = {Proceedings of the CHI Conference on Human Factors in Computing Systems},
  year = {2024}
}"""
_LINGUISTIC = """@inproceedings{roemmele2017evaluating,
  title = {Evaluating Story Generation Systems Using Automated Linguistic Analyses},
  author = {Roemmele, Melissa and Gordon, Andrew S. and Swanson, Reid},
  booktitle = {SIGKDD 2017 Workshop on Machine Learning for Creativity},
  year = {2017}
}"""
_FEEDBACK = """@inproceedings{rashkin2025help,
  title = {Help Me Write a Story: Evaluating {LLM}s' Ability to Generate Writing Feedback},
  author = {Rashkin, Hannah and Clark, Elizabeth and Huot, Fantine and Lapata, Mirella},
  booktitle = {Proceedings of the Annual Meeting of the Association for Computational Linguistics},
  year = {2025}
}"""
_MTLD = """@article{mccarthy2010mtld,
  title = {{MTLD}, vocd-{D}, and {HD}-{D}: A validation study of sophisticated approaches to lexical
           diversity assessment},
  author = {McCarthy, Philip M. and Jarvis, Scott},
  journal = {Behavior Research Methods},
  volume = {42},
  pages = {381--392},
  year = {2010}
}"""
_PPI = """@article{angelopoulos2023ppi,
  title = {{PPI++}: Efficient Prediction-Powered Inference},
  author = {Angelopoulos, Anastasios N. and Duchi, John C. and Zrnic, Tijana},
  journal = {arXiv preprint arXiv:2311.01453},
  year = {2023}
}"""
_TTCW_ID = "ttcw"
_DIVERSITY = (
    "The diversity of the set was measured at equal length after Shaib et al. (2024), with "
    "jackknife intervals over texts; pairs of texts were compared by runs of six words and more "
    "in common."
)
_BIBTEX: dict[Part, tuple[str, ...]] = {
    "originality": (_SALIERI,),
    "fluency": (),
    "profile": (_LINGUISTIC, _MTLD),
    "lines": (),
    "verdicts": (_TTCW,),
    "feedback": (_FEEDBACK,),
}


def methods_of(review: Review, by: str | None = None) -> list[str]:
    """Sentences, one list entry a paragraph, of what was done to these texts."""
    says = {
        "originality": _originality,
        "fluency": _fluency,
        "profile": _profile,
        "lines": _lines,
        "verdicts": _verdicts,
        "feedback": _feedback,
    }
    n = len(review.texts)
    many = "one text was" if n == 1 else f"{n:,} texts were"
    first = f"With Fabula {__version__}, {many} measured as follows."
    paragraphs = [first, *(says[part](review) for part in PARTS if part in review.signatures)]
    if SET in review.signatures:
        paragraphs.append(_DIVERSITY)
    paragraphs += [one.methods for one in _others(review)]
    if by is not None:
        paragraphs.append(
            f"Groups by {by} were compared pair by pair with the two-sided Mann-Whitney U test; "
            f"p-values were corrected over the pairs of each number by Holm's method, and means "
            f"have 95 % percentile bootstrap intervals."
        )
    return paragraphs


def bibtex_of(review: Review) -> str:
    """The references of `methods_of`."""
    is_ttcw = review.rubric is not None and review.rubric.id == _TTCW_ID
    parts = [p for p in PARTS if p in review.signatures and (p != "verdicts" or is_ttcw)]
    found = [entry for part in parts for entry in _BIBTEX[part]]
    found += [_PPI] if review.corrected else []
    found += [one.citation for one in _others(review) if one.citation]
    return "\n\n".join(dict.fromkeys(found))


def _others(review: Review) -> list[Instrument]:
    """The instruments that measured these texts besides Fabula's own parts."""
    return [one for one in review.instruments if one.id in review.signatures]


def _parts(review: Review, part: Part) -> dict[str, str]:
    return dict(Signature.parse(review.signatures[part].split("\n")[0]).parts)


def _originality(review: Review) -> str:
    parts = _parts(review, "originality")
    levels = parts.get("L", "")
    kind = "verbatim" if parts.get("match") == "verbatim" else "verbatim or near-verbatim"
    return (
        f"Originality is the Creativity Index (Lu et al. 2024): the sum over L = "
        f"{levels.replace('-', ' to ')} of the share of words that lie in no run of L or more "
        f"words found ({kind}) in the reference corpus ({review.size}; {parts.get('ref', '')}). "
        f"Case was {'folded' if parts.get('case') == 'fold' else 'kept'}, punctuation "
        f"{'dropped' if parts.get('punct') == 'drop' else 'kept'}. Missing scores were left out, "
        f"never counted as 0."
    )


def _fluency(review: Review) -> str:
    parts = _parts(review, "fluency")
    model = parts.get("model", "a language model")
    return (
        f"Fluency is the surprisal of the words under {model.partition('@')[0]}, in bits a word, "
        f"each sentence read after what stands before it, up to {parts.get('ctx', 'some')} tokens."
    )


def _profile(review: Review) -> str:
    parts = _parts(review, "profile")
    return (
        f"The linguistic profile follows Roemmele, Gordon and Swanson (2017), with MTLD (McCarthy "
        f"and Jarvis 2010), parsed by {parts.get('pipe', 'spaCy')}; word frequencies are those of "
        f"{parts.get('freq', 'wordfreq').partition(',')[0]}."
    )


def _lines(review: Review) -> str:
    parts = _parts(review, "lines")
    return (
        f"Notes on lines (repetitions, names in two spellings, errors, stock phrases, matters of "
        f"style) follow Fabula's rules, version {parts.get('rules', '')}; errors of grammar and "
        f"spelling are those of {parts.get('grammar', 'no checker')}."
    )


def _verdicts(review: Review) -> str:
    names = _listed([judge.rater.partition("@")[0] for judge in review.judges])
    rubric = review.rubric
    title = rubric.title if rubric else "the rubric"
    source = " (Chakrabarty et al. 2024)" if rubric and rubric.id == _TTCW_ID else ""
    checked = []
    for judge in review.judges:
        trust = judge.overall_trust
        shown = (
            f"Cohen's kappa with experts {trust.shown}"
            if trust
            else "never checked against experts"
        )
        checked.append(f"{judge.rater.partition('@')[0]}: {shown}")
    return (
        f"The items of the rubric “{title}”{source} were put to {names}, one at a time, at "
        f"temperature 0; answers without a verdict are missing ({'; '.join(checked)})."
        f"{_corrected(review)}"
    )


def _corrected(review: Review) -> str:
    """How labels of some texts were used; empty without them."""
    n_labelled = max((one.overall.n_labelled for one in review.corrected.values()), default=0)
    if not n_labelled:
        return ""
    return (
        f" What experts would have said of all texts was estimated from these answers and their "
        f"labels of {n_labelled:,} texts by prediction-powered inference (Angelopoulos et al. "
        f"2023), with 95 % intervals over texts."
    )


def _feedback(review: Review) -> str:
    advice = [one for text in review.texts for one in text.advice]
    names = _listed(list(dict.fromkeys(one.model.partition("@")[0] for one in advice)))
    times = _parts(review, "feedback").get("times", "several")
    return (
        f"Feedback was asked for from {names}, {times} times for each text, after the task of "
        f"Rashkin et al. (2025); points of the same place and meaning were joined, and those that "
        f"quote words which the text does not hold were dropped."
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
