"""How probable texts are to a language model, as scores to tell human from machine.

Mean log-likelihood and log-rank (Gehrmann, Strobelt and Rush 2019), and the conditional probability
curvature of Fast-DetectGPT (Bao et al. 2024) with one model for sampling and scoring.

Texts are normalized by `text.plain`: where people's texts were collected without line breaks, or
with curly quotation marks, a model would find them improbable for that alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabula import __version__
from fabula.text import check_documents
from fabula.text.plain import PLAIN, plain_text
from fabula.types import Document, Signature

if TYPE_CHECKING:
    from fabula.models.surprisal import Likelihood, SurprisalModel


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
