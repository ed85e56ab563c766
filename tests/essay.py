"""A rubric as a teacher writes one, with an item of every scale that judges answer."""

from fabula.rubrics.load import parse_rubric
from tests.judging.judged_stories import rubric_text

ESSAY_TOML = rubric_text("essay", {
    "thesis": "Is there a thesis?",
    "style": {"question": "How good is the style?",
              "scale": {"kind": "number", "low": 1, "high": 5}},
    "voice": {"question": "Whose voice is it?",
              "scale": {"kind": "choice", "options": ["Own", "Borrowed", "None"]}},
    "grade": {"question": "Which grade?",
              "scale": {"kind": "choice", "options": ["A", "B", "C"], "values": [1, 0.5, 0]}},
    "advice": {"question": "What should be done about the thesis?", "scale": {"kind": "text"},
               "show_if": "thesis == 'No'"},
})  # fmt: skip
ESSAY = parse_rubric(ESSAY_TOML.encode(), "essay.toml")
