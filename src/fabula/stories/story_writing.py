"""Stories for a study: a one-sentence plot, then a story of a given length from each model.

Chakrabarty et al. 2024, section 5.1 and Table 11: a model is given a one-sentence plot and a length
in words, and is then asked to rewrite its story until it is within 200 words of the length, at most
20 times; so the stories of a group share their plot and length. (Below 1,000 words, the tolerance
here is a fifth of the length.) Every round is kept. A story that never comes close to its length is
reported and left out of the stories.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fabula.core.errors import InputError
from fabula.core.resume import KeptRows, Row, RowKind
from fabula.core.store import read_rows, text_digest
from fabula.core.types import Document
from fabula.models.base import FENCE, Effort, Model, Prompt, Sampling, fence
from fabula.models.texts import Wanted, ask_for, in_parallel, read_written
from fabula.text import check_documents, count_words

PLOTS = RowKind("the plot", ("id", "model"), ("missing_reason", "plot", "text_digest"))
ROUNDS = RowKind(
    "the story",
    ("id", "model", "round"),
    ("missing_reason", "text", "n_words", "target_words", "is_cut", "plot"),
)
_TOKENS_PER_WORD = 1.5
_MIN_TOKENS = 256
_AT_ONCE = "Begin with the story at once: no title, no remark before or after it."
_PAPER_WITHIN = 200
_SHARE_WITHIN = 0.2


@dataclass(frozen=True, slots=True)
class Plot:
    """What a story is about, and its target length in words."""

    id: str
    text: str
    n_words: int


@dataclass(frozen=True, slots=True)
class WritePlan:
    """How stories are written. The defaults are those of the paper."""

    max_rounds: int = 20
    temperature: float = 1.0
    seed: int = 0
    effort: Effort | None = None

    def tolerance(self, n_words: int) -> int:
        """The tolerance in words: 200, or a fifth of this length where that is less.

        The paper's stories have 1,000 words or more, and its 200 is for these.
        """
        return min(_PAPER_WITHIN, round(_SHARE_WITHIN * n_words))


def read_plots(
    path: Path, *, n_words: int | None = None, verified_only: bool = False
) -> tuple[list[Plot], int]:
    """Return the plots of a file, and how many no person has verified. Raises `InputError`.

    Rows without a plot (a model gave none) are skipped.
    """
    plots: list[Plot] = []
    n_unverified = 0
    for number, row in enumerate(read_rows(path, is_edited=True), 1):
        where = f"{path}, line {number}"
        if "id" not in row or "plot" not in row:
            raise InputError(f"{where}: needs an id and a plot")
        if not row["plot"]:
            continue
        verified = row.get("verified") is True
        if verified_only and not verified:
            continue
        length = n_words or row.get("n_words")
        if not isinstance(length, int) or isinstance(length, bool) or length < 1:
            raise InputError(
                f"{where}: no length; set the length with `words`, or n_words in the row"
            )
        n_unverified += not verified
        plots.append(Plot(str(row["id"]), str(row["plot"]), length))
    if not plots:
        raise InputError(f"{path}: contains no plots" + " that are verified" * verified_only)
    if len({plot.id for plot in plots}) < len(plots):
        raise InputError(f"{path}: two plots have the same id; give each its own")
    return plots, n_unverified


def check_output(out: Path, inputs: Sequence[Path]) -> None:
    """Raise `InputError` if the finished stories would overwrite another file."""
    if out.resolve() in {path.resolve() for path in inputs}:
        raise InputError(f"{out}: is an input of this command; choose another `out`")
    if not out.exists():
        return
    for row in read_rows(out, is_edited=True):
        if not {"plot", "prompt_id", "author", "text"} <= row.keys():
            raise InputError(f"{out}: contains no stories of this command; choose another `out`")


async def make_plots(
    documents: Sequence[Document],
    model: Model,
    rows: KeptRows,
    *,
    seed: int = 0,
    meter: Callable[[int], None] = lambda _: None,
) -> list[Row]:
    """Return a row with the one-sentence plot of each story; a person sets `verified`."""

    def wanted(document: Document) -> Wanted:
        digest = text_digest(document.text)

        async def make() -> Row:
            line = fence(FENCE, document.text)
            prompt = Prompt(
                f"Here is a story.\n\n{line}\n{document.text.strip()}\n{line}\n",
                "\nSummarise its plot in one sentence of at most 60 words: who it is about, what "
                "happens, and how it ends. Do not name the author or the title. Write only the "
                "sentence.\n",
            )
            written = read_written(await model.ask(prompt, Sampling(max_tokens=160, seed=seed)))
            known = {"author": document.author, "title": document.meta.get("title")}
            return {
                "id": document.id,
                "plot": written.text and " ".join(written.text.split()),
                "missing_reason": written.missing_reason,
                "frame_removed": written.frame_removed,
                "text_digest": digest,
                "n_words": count_words(document.text),
                "verified": False,
                "model": model.name,
                **{key: value for key, value in known.items() if value is not None},
            }

        return {"id": document.id, "model": model.name, "text_digest": digest}, make

    return await ask_for(map(wanted, check_documents(documents)), rows, model.n_parallel, meter)


async def write_stories(
    plots: Sequence[Plot],
    model: Model,
    plan: WritePlan,
    rows: KeptRows,
    *,
    meter: Callable[[int], None] = lambda _: None,
) -> list[Row]:
    """Return the last round of each plot's story; every round is kept as it arrives."""
    calls = [partial(_write, plot, model, plan, rows) for plot in plots]
    # A call that fails ends that story's rounds; the next run resumes from there.
    failed: Row = {"missing_reason": "failed", "text": None}
    return await in_parallel(calls, model.n_parallel, failed, meter)


async def _write(plot: Plot, model: Model, plan: WritePlan, rows: KeptRows) -> Row:
    row: Row | None = None
    effort = f"|effort:{plan.effort}" if plan.effort else ""
    drawn = f"temperature:{plan.temperature:g}|seed:{plan.seed}{effort}"
    n_most = _TOKENS_PER_WORD * (plot.n_words + plan.tolerance(plot.n_words))
    for number in range(plan.max_rounds + 1):
        key = {"id": plot.id, "model": model.name, "round": number}
        kept = rows.find(key | {"plot": plot.text, "target_words": plot.n_words, "sampling": drawn})
        if kept is None:
            n_tokens = max(_MIN_TOKENS, round(n_most))
            sampling = Sampling(plan.temperature, 1.0, n_tokens, plan.seed + number)
            if row is None:
                prompt = Prompt(
                    "",
                    "Write a literary short story with the plot below. It should have about "
                    f"{plot.n_words} words, and no fewer. {_AT_ONCE}\n\nPlot: {plot.text}\n",
                )
            else:
                story, n_last = str(row["text"]), row["n_words"]
                line, other = fence(FENCE, story), "longer" if n_last < plot.n_words else "shorter"
                prompt = Prompt(
                    "You wrote the story below from this plot: "
                    f"{plot.text}\n\n{line}\n{story}\n{line}\n",
                    f"\nIt was to have {plot.n_words} words, and has {n_last}. Write it again, "
                    f"{other}, as near to {plot.n_words} words as you can. {_AT_ONCE}\n",
                )
            answer = await model.ask(prompt, sampling)
            written = read_written(answer)
            kept = {
                **key,
                **asdict(written),
                "n_words": count_words(written.text or ""),
                "target_words": plot.n_words,
                # A story cut off at the token limit has no ending, whatever its length.
                "is_cut": answer.stop == "length",
                "plot": plot.text,
                "sampling": drawn,
            }
            rows.add(kept)
        # Checked again on every run, since the tolerance may have changed.
        is_near = abs(kept["n_words"] - plot.n_words) <= plan.tolerance(plot.n_words)
        row = kept | {"is_done": is_near and not kept["is_cut"] and not kept["missing_reason"]}
        if row["missing_reason"] or row["is_done"]:
            break
    assert row is not None
    return row


def story_row(row: dict[str, Any], author: str) -> dict[str, Any]:
    """A finished story as a row of `stories.jsonl`, in the group of its plot."""
    return {
        "id": f"{row['id']}_{author}",
        "text": row["text"],
        "author": author,
        "prompt_id": row["id"],
        **{name: row[name] for name in ("plot", "n_words", "target_words")},
        "n_rounds": row["round"],
        "frame_removed": row.get("frame_removed", []),
    }
