"""Studies with people: a rubric or form as data, web pages to answer it, and the answers.

Chakrabarty et al. 2024, "Art or Artifice?", section 5.2; Rashkin et al. 2025, "Help Me Write a
Story", section 6 and appendix D.
"""
