"""How probable texts are to a language model, as scores to tell human from machine.

Mean log-likelihood and log-rank (Gehrmann, Strobelt and Rush 2019), and the conditional probability
curvature of Fast-DetectGPT (Bao et al. 2024) with one model for sampling and scoring.

A model's probabilities depend on line breaks, on curly or straight quotation marks, and on the
spaces a tokeniser left before punctuation. These come from the software with which a text was typed
or published, not from its author, and where texts by people and by machines were collected
differently they alone separate the two. So texts are read without them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabula import __version__
from fabula.text import check_documents
from fabula.types import Document, Signature

if TYPE_CHECKING:
    from fabula.models.surprisal import Likelihood, SurprisalModel

PLAIN = "plain1"
"""Name of these rules; it changes when they do, and is part of signatures."""

_ONE_KIND = str.maketrans(
    {
        **dict.fromkeys("’‘ʼ＇‛´′`", "'"),
        **dict.fromkeys("“”„‟«»″〝〞＂", '"'),
        **dict.fromkeys("‐‑", "-"),
        "…": "...",
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", ""),
    }
)
_RULES = [
    # Emphasis, headings, quotation levels and rules, as in Markdown and mail.
    (re.compile(r"[*_~|\\]+|(?<!\S)(?:#+|>+|-{3,}|={3,})(?!\S)|#{2,}"), " "),
    (re.compile(r"``|‘‘"), "“"),
    (re.compile(r"''|’’"), "”"),
    (re.compile(r"[“„«‟〝]\s+"), "“"),
    (re.compile(r"\s+([”»〞])"), r"\1"),
    (re.compile(r"\s*(?:[–—―−]|--+)\s*|\s+-\s+"), " - "),
    (re.compile(r"\.(?:\s?\.){2,}"), "…"),
    # What a tokeniser split: ca n't, it 's, so ; he said .
    (re.compile(r"(?<=\w)\s+(?=(?:n['’]t|['’](?:s|re|ve|ll|d|m))\b)", re.IGNORECASE), ""),
    (re.compile(r"\s+(?=[.,;:!?%)\]…]+(?:\s|$|[\"”'’]))"), ""),
    (re.compile(r"(?<=[(\[])\s+"), ""),
]
_spaces = re.compile(r"\s+")


def plain_text(text: str) -> str:
    """`text` on one line, with one kind of quotation mark, dash and space.

    Words, their order and their case are kept. Applying it twice changes nothing more.
    """
    before, plain = "", unicodedata.normalize("NFC", text)
    while plain != before:
        # A rule may make an earlier one applicable; each shortens the text or leaves fewer kinds.
        before = plain
        for pattern, instead in _RULES:
            plain = pattern.sub(instead, plain)
        plain = _spaces.sub(" ", plain.translate(_ONE_KIND)).strip()
    return plain


@dataclass(frozen=True, slots=True)
class Probability:
    """A model's scores of one document."""

    document: Document
    likelihood: Likelihood
    signature: Signature


class ProbabilityMeasure:
    """The measure with its open model, ready for documents."""

    def __init__(self, model: SurprisalModel) -> None:
        self._model = model
        self.signature = Signature.of(
            "probability",
            model=model.name,
            run=model.runtime,
            ctx=str(model.max_context),
            text=PLAIN,
            v=__version__,
        )

    def asked(self, document: Document) -> dict[str, Any]:
        """Nothing else determines a row."""
        return {}

    def measure(self, documents: Iterable[Document]) -> Iterator[Probability]:
        """Measure documents as they come, in order."""
        for document in check_documents(documents):
            likelihood = self._model.likelihood(plain_text(document.text))
            yield Probability(document, likelihood, self.signature)
