"""A model decides whether a document copies or quotes a text, if the rule is inconclusive.

Lu et al. 2024, appendix A.3: a language model is shown a few examples and asked whether one
paragraph contains copies or quotations of another. Here it is asked after the rule, about documents
that share a run of words with the text which is too short for the rule. The examples and the
wording are ours.
"""

from __future__ import annotations

import hashlib

from fabula.core.errors import CallFailed, LookupFailed
from fabula.models.base import Choice, HeldOpen, Prompt, Sampling, Usage
from fabula.models.cost import Estimate, Price, estimate_tokens
from fabula.reference.backend import LocatedText
from fabula.reference.exclude import Copies, Copy, CopyRule, maximal_spans, shared_runs
from fabula.reference.search import MAX_PLACES, Reference

_CONTEXT_CHARS = 500
_MAX_DOCUMENTS = 20
_SAMPLING = Sampling(max_tokens=64, seed=0)
_CHOICE = Choice(("Yes", "No"), is_first=True, label="Answer", reason_chars=200)

_EXAMPLES = """Decide whether paragraph A copies, quotes or cites words of paragraph B. Sharing a \
common phrase, a subject or a manner of speaking is not enough: A must take its words from B, or \
both must hold the same passage. Answer Yes or No.

Paragraph A: My grandmother knew one line of Carroll by heart, and said it over the stove every \
morning: "The time has come, the Walrus said, to talk of many things."
Paragraph B: "The time has come," the Walrus said, "To talk of many things: Of shoes and ships and \
sealing-wax, Of cabbages and kings."
Answer: Yes

Paragraph A: The time has come for the council to talk of many things, the mayor said: of roads, \
of taxes, and of who is to pay for the bridge.
Paragraph B: "The time has come," the Walrus said, "To talk of many things: Of shoes and ships and \
sealing-wax, Of cabbages and kings."
Answer: No

Paragraph A: Call me what you like, but do not call me before noon; I am a sailor who hates the sea.
Paragraph B: Call me Ishmael. Some years ago, never mind how long precisely, I thought I would \
sail about a little and see the watery part of the world.
Answer: No

Paragraph A: The novel opens with a sailor who has "little or no money in my purse, and nothing \
particular to interest me on shore", and who therefore goes to sea.
Paragraph B: Having little or no money in my purse, and nothing particular to interest me on \
shore, I thought I would sail about a little and see the watery part of the world.
Answer: Yes

"""


def estimate_quotes(price: Price | None) -> Estimate:
    """The most that a model is asked about one text."""
    n, n_examples = _MAX_DOCUMENTS, estimate_tokens(_EXAMPLES)
    prompt = n_examples + 2 * estimate_tokens(" " * 2 * _CONTEXT_CHARS)
    usage = Usage(n * prompt, (n - 1) * n_examples, n * _SAMPLING.max_tokens)
    return Estimate.of(n, usage, price, is_most=True)


class QuoteJudge(HeldOpen):
    """Asks a model; use it as a context manager."""

    @property
    def signature(self) -> str:
        """Model and wording, for the signature of what is measured."""
        wording = hashlib.sha256(_EXAMPLES.encode()).hexdigest()[:8]
        return f"model({self._model.name.replace('@', '#')},{wording},{_SAMPLING.seed})"

    def add_copies(
        self, reference: Reference, text: LocatedText, copies: Copies, rule: CopyRule
    ) -> Copies:
        """The copies found by the rule, and those that the model calls copies or quotations.

        It is asked about at most 20 documents, those with the longest shared runs; a remark says if
        more were in doubt. Raises `LookupFailed` if it gives no answer: a document in doubt is
        neither in nor out.
        """
        by_number = {copy.number: copy for copy in copies}
        lengths = reference.longest_matches(text.words.words, exclude=by_number)
        doubtful: dict[int, tuple[int, int]] = {}
        spans = sorted(maximal_spans(lengths, rule.cover_run), key=lambda span: (-span[1], span))
        for first, n in spans:
            words = text.words.words[first : first + n]
            ((numbers, _),) = reference.documents_of([words], MAX_PLACES, exclude=by_number)
            for number in numbers.tolist():
                doubtful.setdefault(number, (first, n))
        for number, (first, n) in list(doubtful.items())[:_MAX_DOCUMENTS]:
            document, located = reference.located_document(number)
            words = text.words.words[first : first + n]
            place = next(k for k in range(len(located.words)) if located.words[k : k + n] == words)
            source = reference.occurrence(number, place, n).span
            start, end = int(text.words.starts[first]), int(text.words.ends[first + n - 1])
            try:
                theirs = text_around(document.text, source.start, source.end)
                verdict = self.is_copy(theirs, text_around(text.text, start, end))
            except CallFailed as error:
                raise LookupFailed(f"{self._model.name} could not answer: {error}") from error
            if isinstance(verdict, str):
                raise LookupFailed(
                    f"{self._model.name} did not say whether document {document.id!r} copies or "
                    f"quotes the text (it answered {verdict[:80]!r})"
                )
            if verdict:
                title = document.meta.get("title")
                shared, _ = shared_runs(text.words.words, located.words, rule.cover_run)
                named, share = None if title is None else str(title), sum(shared) / len(shared)
                by_number[number] = Copy(number, document.id, named, n, share, by_model=True)
        n_unasked = max(0, len(doubtful) - _MAX_DOCUMENTS)
        remark = (
            f"{self._model.name} was asked about {_MAX_DOCUMENTS} documents in doubt; "
            f"{n_unasked:,} more, which share shorter runs, were not asked about and stayed in"
        )
        remarks = (*copies.remarks, remark) if n_unasked else copies.remarks
        return Copies(tuple(by_number[number] for number in sorted(by_number)), remarks)

    def is_copy(self, a: str, b: str) -> bool | str:
        """Whether paragraph A copies or quotes B; the raw answer if it is neither yes nor no.

        Raises `CallFailed`.
        """
        question = f"Paragraph A: {a}\nParagraph B: {b}\nAnswer:"
        answer = self.run(self._model.ask(Prompt(_EXAMPLES, question), _SAMPLING, _CHOICE))
        for line in answer.text.splitlines() if answer.stop in ("end", "length") else ():
            if word := line.strip().removeprefix("Answer:").strip(" *\"'.").casefold():
                first = word.split(maxsplit=1)[0].strip(".,;:*")
                return {"yes": True, "no": False}.get(first, answer.text)
        return answer.text


def text_around(text: str, start: int, end: int) -> str:
    """The span with its surrounding text, in one line."""
    return " ".join(text[max(0, start - _CONTEXT_CHARS) : end + _CONTEXT_CHARS].split())
