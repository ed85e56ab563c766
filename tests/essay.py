"""A rubric as a teacher writes one, with an item of every scale that judges answer."""

from fabula.rubrics.load import parse_rubric

ESSAY_TOML = """
id = "essay"
version = "1"
title = "Essay"

[[items]]
id = "thesis"
index = 1
title = "Thesis"
question = "Is there a thesis?"

[[items]]
id = "style"
index = 2
title = "Style"
question = "How good is the style?"
scale = { kind = "number", low = 1, high = 5 }

[[items]]
id = "voice"
index = 3
title = "Voice"
question = "Whose voice is it?"
scale = { kind = "choice", options = ["Own", "Borrowed", "None"] }

[[items]]
id = "grade"
index = 4
title = "Grade"
question = "Which grade?"
scale = { kind = "choice", options = ["A", "B", "C"], values = [1, 0.5, 0] }

[[items]]
id = "advice"
index = 5
title = "Advice"
question = "What should be done about the thesis?"
show_if = "thesis == 'No'"
scale = { kind = "text" }
"""
ESSAY = parse_rubric(ESSAY_TOML.encode(), "essay.toml")
