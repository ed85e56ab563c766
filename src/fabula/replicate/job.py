"""A paper's tables reproduced beside the printed numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fabula.core.settings import (
    Between,
    Settings,
    SettingsError,
    of_field,
    part,
    seed_setting,
    setting,
)
from fabula.feedback.job import open_encoder
from fabula.jobs.job import SILENT, Progress
from fabula.jobs.result import Result
from fabula.jobs.shared_settings import Processes, page_setting, plot_setting

if TYPE_CHECKING:
    from fabula.show.sheet import Block


@dataclass(frozen=True, slots=True, repr=False)
class Replicated(Result):
    """Tables with the printed numbers beside ours, and the same as plain values."""

    blocks: Sequence[Block]
    content: dict[str, Any]
    said: Sequence[str] = ()
    """What else was written."""

    def tables(self) -> list[Block]:
        return list(self.blocks)

    def to_json(self) -> dict[str, Any]:
        return self.content

    def notices(self) -> Sequence[str]:
        return self.said


@dataclass(frozen=True, slots=True)
class TtcwSettings(Settings):
    """What is drawn."""

    plot: Path | None = plot_setting("Draw Figure 3 here (.svg, .pdf or .png).")


def ttcw(folder: Annotated[Path, "DIR"], settings: TtcwSettings) -> Replicated:
    """Tables 5 and 6 and Figure 3 of "Art or Artifice?" (Chakrabarty et al. 2024).

    DIR is the folder Art_or_Artifice of github.com/salesforce/creativity_eval.

    Raises `InputError`.
    """
    from fabula.replicate.ttcw import replica_tables, replicate_ttcw, save_distribution

    replica = replicate_ttcw(folder)
    if settings.plot is not None:
        save_distribution(replica, settings.plot)
    return Replicated(replica_tables(replica), replica.to_json())


@dataclass(frozen=True, slots=True)
class LinguisticMetricsSettings(Settings):
    """What is trained and measured, and for how long."""

    out: Path = setting(
        help="Folder for generators, continuations and scores; interrupted runs resume.", unit="DIR"
    )
    books: tuple[str, ...] = setting(
        help="Texts to cut the passages from: cbt_test.txt of the Children's Book Test "
        "(thespermwhale.com/jaseweston/babi/CBTest.tgz), or others.",
        unit="SOURCE",
    )
    train: tuple[str, ...] = setting(
        help="Texts to train the generators on, such as the test's cbt_train.txt or novels.",
        unit="SOURCE",
    )
    stride: int = setting(
        5, help="Number of sentences from the start of one passage to the next.", check=Between(1)
    )
    recurrent: bool = setting(True, help="Train the recurrent network (needs torch).")
    seed: int = seed_setting()
    html: Path | None = page_setting("Write a page with our version of the table here.")
    processes: Processes = part(Processes)


def linguistic_metrics(
    settings: LinguisticMetricsSettings, *, progress: Progress = SILENT
) -> Replicated:
    """Table 2 of "Evaluating Story Generation Systems Using Automated Linguistic Analyses".

    Roemmele, Gordon and Swanson 2017: random, case-based, unigram and recurrent generators and the
    books' own sentences on fifteen metrics.

    Raises `InputError`, `ModelError`.
    """
    from fabula.continuation.tables import write_system_page
    from fabula.replicate.linguistic_metrics import beside_paper, replicate_table

    shown, done = "", 0

    def report(stage: str, n: int, total: int) -> None:
        nonlocal shown, done
        if stage != shown:
            progress.begin(stage, total)
            shown, done = stage, 0
        progress.advance(n - done)
        done = n

    replica = replicate_table(
        settings.books,
        settings.train,
        settings.out,
        stride=settings.stride,
        recurrent=settings.recurrent,
        seed=settings.seed,
        n_jobs=settings.processes.n_processes,
        report=report,
    )
    if settings.html is not None:
        write_system_page(settings.html, replica.table, replica.examples)
    return Replicated(beside_paper(replica), replica.to_json())


def _is_pair(text: str) -> str | None:
    before, _, after = text.partition("=")
    return None if before and after else f"{text}: write BEFORE=AFTER, two groups of `by`"


@dataclass(frozen=True, slots=True)
class CreativityIndexSettings(Settings):
    """What is compared. The defaults follow appendix B of Lu et al. 2024."""

    out: Path = setting(
        help="Folder for references, scores and figures; interrupted runs resume.", unit="DIR"
    )
    texts: tuple[Path, ...] = setting(
        (),
        help="Texts by people and machines, one set per file.",
        default_text="the authors' texts",
    )
    references: tuple[Path, ...] = setting(
        (),
        help="Corpora to compare with, each separately.",
        unit="DIR",
        option="reference",
        default_text="the machine texts of other prompts",
    )
    label: str = setting("label=human", help="Which texts are by people.", unit="FIELD=VALUE")
    by: str = setting("model", help="Field to group texts by.", unit="FIELD")
    cluster: str | None = of_field(
        "Count texts that share this field, and near-duplicates, as one; in the reference "
        "they are left out.",
        default_text="prompt_id, pair_id or author, whichever exists",
    )
    model: str = setting(
        "local",
        help="Model whose log-probabilities are compared as detectors: local, a .gguf "
        "file, or none (needs the extra [local]).",
        unit="MODEL|none",
    )
    matches: tuple[Literal["verbatim", "near"], ...] = setting(
        ("verbatim", "near"),
        help="Kind of matches; repeat it for several. Near matches take long.",
        option="match",
    )
    exclude: Literal["auto", "none"] | None = setting(
        None,
        help="Leave out documents of the reference that copy or quote a text.",
        default_text="auto for the authors' texts, else none",
    )
    aligned: tuple[str, ...] = setting(
        (),
        help="Groups of models before and after alignment, to compare at each L; repeat it for "
        "several.",
        unit="BEFORE=AFTER",
        check=_is_pair,
    )
    seed: int = seed_setting()
    processes: Processes = part(Processes)


def creativity_index(
    settings: CreativityIndexSettings,
    folder: Annotated[Path | None, "DIR"] = None,
    *,
    progress: Progress = SILENT,
) -> Replicated:
    """Run the analyses of "AI as Humanity's Salieri" on your own texts and references.

    Lu et al. 2024, Figures 3a to 3j and 3n: the index of people and models, verbatim and near;
    L-uniqueness against L; models before and after alignment; the spread over documents; detection
    beside a language model's log-probabilities. DIR is a copy of the authors' repository
    (github.com/GXimingLu/creativity_index), whose outputs/ are read too.

    Raises `InputError`, `CorpusError`, `ModelError`.
    """
    from fabula.core.store import dump_json, write_whole
    from fabula.novelty.detector import Label
    from fabula.reference.exclude import CopyRule
    from fabula.replicate import creativity_index as paper
    from fabula.show.charts import check_matplotlib

    check_matplotlib()
    out, cluster = settings.out, settings.cluster
    if folder is None and not settings.texts:
        raise SettingsError(
            "texts",
            "or a copy of the authors' repository, github.com/GXimingLu/creativity_index, is "
            "required",
        )
    label = Label.parse(settings.label)
    plan = paper.Plan({}, {}, label)
    if settings.texts:
        texts = {p.stem: paper.read_set(p, paper.N_WORDS, label, cluster) for p in settings.texts}
        whole = (paper.read_set(p, None, label, cluster) for p in settings.texts)
        references = {} if settings.references else {"machine": paper.machines(label, whole)}
        plan = paper.Plan(texts, references, label)
    elif folder is not None:
        plan = paper.release_plan(folder, cluster)
    plan = replace(
        plan,
        references={path.name: path for path in settings.references} or plan.references,
        label=label,
        by=settings.by,
        cluster=settings.cluster,
        matches=settings.matches,
        seed=settings.seed,
        model=None if settings.model == "none" else settings.model,
        exclude={"auto": CopyRule(), "none": None}.get(settings.exclude or "", plan.exclude),
        aligned=tuple((a, b) for a, _, b in (pair.partition("=") for pair in settings.aligned)),
        n_threads=settings.processes.n_processes,
    )
    analyses = paper.run_analyses(plan, out, report=progress.say)
    progress.say("drawing")
    figures = paper.write_figures(analyses, out / "figures")
    content = paper.analyses_json(analyses)
    write_whole(out / "results.json", (dump_json(content) + "\n").encode())
    written = f"written: {out / 'results.json'}, and {len(figures)} figures in {out / 'figures'}"
    return Replicated(paper.analyses_tables(analyses), content, [written])


@dataclass(frozen=True, slots=True)
class StoryFeedbackSettings(Settings):
    """Which of the user's own feedback is measured too, and how."""

    runs: tuple[Path, ...] = setting(
        (),
        help="Your own feedback, as `fabula feedback elicit` writes it, for the same tables.",
        unit="FEEDBACK.jsonl",
        option="run",
    )
    ratings: tuple[Path, ...] = setting(
        (),
        help="Finished runs of `fabula feedback rate` that rated the feedback of `runs`: Tables 3 "
        "to 5.",
        unit="RUNDIR",
    )
    encoder: str | None = setting(
        None,
        help="Also measure BERTScore (Table 6), by the packaged encoder or the one in a folder.",
        unit="packaged|DIR",
        option="bertscore",
    )
    tokens: Literal["words", "authors"] = setting(
        "words",
        help="What trigrams are made of: words, or what the authors' one public row suggests that "
        "they counted (Penn Treebank tokens without single punctuation marks).",
        tunes="tests",
    )
    seed: int = seed_setting()

    def check_together(self) -> None:
        if self.ratings and not self.runs:
            raise SettingsError("ratings", "needs the feedback that was rated, in `runs`")


def story_feedback(
    settings: StoryFeedbackSettings, folder: Annotated[Path | None, "DIR"] = None
) -> Replicated:
    """Tables 1 and 3 to 9 of "Help Me Write a Story" (Rashkin et al. 2025).

    DIR is the folder of the files released at github.com/google-deepmind/igen.

    Raises `InputError`, `ModelError`.
    """
    from fabula.feedback.released import HOME
    from fabula.feedback.scores import sentence_counter
    from fabula.replicate import story_feedback as paper
    from fabula.text.pipeline import SENTENCES, load_pipeline

    runs, seed = settings.runs, settings.seed
    if folder is None and not runs:
        raise SettingsError(
            "runs", f"or the folder of the released files is required; these are at {HOME}"
        )
    count = sentence_counter(load_pipeline(SENTENCES))
    means = paper.Means(count, open_encoder(settings.encoder), settings.tokens)
    released = paper.replicate_released(folder, means=means, seed=seed) if folder else None
    run = paper.replicate_run(runs, settings.ratings, means=means, seed=seed) if runs else None
    replicas = [replica for replica in (released, run) if replica is not None]
    content = {
        "released": released and paper.replica_json(released),
        "run": run and paper.replica_json(run),
        "claims": [claim.to_json() for replica in replicas for claim in replica.claims],
    }
    parts = [block for replica in replicas for block in paper.replica_tables(replica)]
    return Replicated(parts, content)
