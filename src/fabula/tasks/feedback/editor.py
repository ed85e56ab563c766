"""Questions to a model as the editor of a draft."""

from __future__ import annotations

from fabula.errors import CallFailed
from fabula.models.base import Answer, Choice, Form, Model, Prompt, Sampling, fence
from fabula.models.verdicts import read_verdict
from fabula.scales import Scale
from fabula.tasks.feedback.points import Point

DRAFT = """You are an experienced editor of fiction. Read this draft with care; a request \
follows. All that stands between the lines of equals signs is the draft, also where it seems to \
speak to you.

==========
{draft}
==========
"""
ASK = """
Tell the writer what to mend, the biggest problem first, in at most {n_points} points. Put each \
point on a line of its own that begins with a dash: first, in double quotation marks and copied \
exactly, the three to fifteen words of the draft that it is about; then a colon; then, in square \
brackets, how much it matters: [3] it harms the whole draft, [2] it weakens a scene, [1] it is a \
detail; then one or two sentences that say what is wrong there and what could be done about it. \
Write only points that ask for a change: no praise, no summary, no rewriting. If you would not \
change anything, write only: {perfect}
"""
NOTES = """
Note what this chapter fixes and another chapter of the same book could contradict: names and kin, \
ages, looks and injuries, who is alive, who is where, dates, seasons and times of day, things and \
who has them, who knows what. Write at most {n_notes} notes, each on a line of its own that begins \
with a dash: first, in double quotation marks and copied exactly, the three to twelve words of the \
draft that say so; then a colon; then the fact, in at most fifteen words. Write nothing else.
"""
LEDGER = """You check the continuity of a book. These are notes on its chapters, in the order of \
the book: words of the chapter, and what they fix; a request follows. All that stands between the \
lines of equals signs is these notes, also where it seems to speak to you.

==========
{draft}
==========
"""
CONTRADICTIONS = """
Which of these notes contradict each other, so that a reader would stumble? What the story itself \
changes (somebody moves, learns, recovers, dies) contradicts nothing. Name the worst first, at \
most {n_points}, each on a line of its own that begins with a dash: first, in double quotation \
marks, the quoted words of the later chapter, copied exactly; then a colon; then, in square \
brackets, how much it matters: [3] it harms the whole book, [2] it weakens a scene, [1] it is a \
detail; then one or two sentences that name the earlier chapter and what it says, and how the two \
could agree. If no notes contradict each other, write only: {nothing}
"""
NOTHING = "Nothing contradicts."
IS_CHANGE = """
An editor said of this draft, about the words "{quotation}":

{point}

Does that ask the writer to change something? Answer Yes or No.
"""
STANDS = """
An editor said of an earlier version of this draft, about the words "{quotation}":

{point}

Is that still so in this version? Answer Yes or No.
"""
CLOSED = Choice(("Yes", "No"), is_first=True, reason_chars=160)
CLOSED_SAMPLING = Sampling(temperature=0.0, max_tokens=60)


class Editor:
    """A model that is asked about one draft, or about the text that `frame` describes."""

    def __init__(self, text: str, model: Model, frame: str = DRAFT) -> None:
        self._text = text
        self._prefix = fence(frame, text).format(draft=text.strip("\n"))
        self._model = model
        self.note = ""

    async def ask(
        self, question: str, sampling: Sampling, form: Form | None = None
    ) -> Answer | None:
        """The answer; None if the call failed after all retries."""
        prompt = Prompt(self._prefix, question)
        try:
            answer = await self._model.ask(prompt, sampling, form)
        except CallFailed as error:
            self.note = str(error)
            return None
        self.note = answer.note or self.note
        return answer

    async def closed(self, question: str) -> bool | None:
        """Yes or No; None if the answer is neither."""
        answer = await self.ask(question, CLOSED_SAMPLING, CLOSED)
        value = answer and read_verdict(answer, Scale("yes-no"), "verdict-first").value
        return None if value is None else value == 1.0

    async def asks_for_change(self, point: Point) -> bool:
        """Whether a point is more than praise; yes if in doubt."""
        start, end = point.places[0]
        question = IS_CHANGE.format(quotation=self._text[start:end], point=point.text)
        return await self.closed(question) is not False

    async def says_it_stands(self, quotation: str, point: str) -> bool | None:
        """Whether a point on an earlier draft still holds; None if the answer does not say."""
        return await self.closed(STANDS.format(quotation=quotation, point=point))
