"""Feedback on stories: plant faults, ask models about them, measure, rate and label it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.core.errors import InputError, ModelError, explain
from fabula.core.provenance import note_output
from fabula.core.resume import Ledger, kept_rows
from fabula.core.settings import Between, Settings, SettingsError, part, seed_setting, setting
from fabula.core.store import dump_json, read_measurements, write_rows, write_whole
from fabula.core.types import Contrast, Document, Estimate, Measurement, Rubric, by_rater
from fabula.jobs import models as calls
from fabula.jobs.given import Part, Rows, located_in
from fabula.jobs.job import SILENT, Confirm, Progress, Texts, agreed
from fabula.jobs.result import Result, Row, picked
from fabula.jobs.shared_settings import (
    plot_setting,
    restart_setting,
    rows_file,
    share_of,
    share_setting,
)
from fabula.judging.job import FOLDER_HELP, Asking, Judged, Labels, ask_judges, judging_of, plan_of

if TYPE_CHECKING:
    from fabula.feedback.corrupting import CorruptPlan, LeftOut
    from fabula.feedback.fault_matches import Findings, FindScore, ReaderAccuracy
    from fabula.feedback.scores import Answers, Subset
    from fabula.judging.session import Spent
    from fabula.models.base import FunctionModel
    from fabula.models.encoder import Encoder
    from fabula.raters.ratings import CategoryShares
    from fabula.show.sheet import Block


def feedback_rows(parts: Iterable[Part], *, whole: bool = False) -> list[Row]:
    """Rows of `feedback elicit`; files released with the paper are recognised by name.

    From files of `study export`, these are people's own feedback. `whole` requires every field of
    such a row, and that no piece occurs twice. Raises `InputError` with the line.
    """
    from fabula.feedback.released import RELEASED_FILES, read_released_file
    from fabula.text.feedback_pieces import check_feedback_row, feedback_id, own_feedback_row

    rows, seen = list[Row](), set[str]()
    for source in parts:
        located = located_in(source)
        if isinstance(source, Path) and source.name in RELEASED_FILES:
            lines = enumerate(read_released_file(source), 1)
            located = ((row, f"{source}, line {number}") for number, row in lines)
        for row, where in located:
            if whole:
                check_feedback_row(row, where)
                if (id_ := feedback_id(row)) in seen:
                    raise InputError(f"{where}: the id {id_!r} occurs twice")
                seen.add(id_)
            elif {"rubric", "item", "rater"} <= row.keys():
                if (own_row := own_feedback_row(row)) is None:
                    continue
                row = own_row
            rows.append(row)
    return rows


def people_means(
    paths: Sequence[Path], rubric: Rubric, ids: Collection[str]
) -> dict[str, dict[str, float]]:
    """People's means by item and piece of feedback, from measurements or the released ratings.

    Raises `InputError` for answers of a model, on another rubric, with another wording, or about
    none of the pieces `ids`.
    """
    from fabula.feedback.released import RATINGS_FILE, read_released_file
    from fabula.raters.ratings import mean_scores, score_table
    from fabula.text.feedback_pieces import OWN_FEEDBACK, feedback_id

    measurements, means = list[Measurement](), dict[str, dict[str, float]]()
    for path in paths:
        if path.name == RATINGS_FILE:
            for row in read_released_file(path):
                for question, value in row["ratings"].items():
                    if value is not None:
                        means.setdefault(question.replace("-", "_"), {})[feedback_id(row)] = value
            continue
        answers = list(read_measurements(path))
        for entry in answers:
            if entry.signature.startswith("judge|"):
                by = f"by a model ({entry.rater}), not by people"
                raise InputError(f"{path}: contains answers {by}")
            if entry.rubric != OWN_FEEDBACK and entry.rubric.partition("-")[0] != rubric.id:
                raise InputError(f"{path}: contains answers to {entry.rubric}, not to {rubric.key}")
        measurements += answers
    try:
        table = mean_scores(score_table(measurements, rubric))
    except InputError as error:
        raise InputError(f"`people`: {error}") from error
    for item, by_document in table.items():
        means.setdefault(item, {}).update(by_document)
    if paths and not any(means.values()):
        raise InputError(f"{paths[0]}: contains no answer to an item of the rubric {rubric.id}")
    for answered in means.values():
        check_overlap(ids, answered, "people")
    return means


def check_overlap(ids: Collection[str], known: Mapping[str, Any], name: str) -> None:
    """Raise `InputError` if answers or labels are about none of the pieces."""
    if known and not any(id_ in known for id_ in ids):
        raise InputError(
            f"`{name}`: none of its ids matches the feedback; its ids look like "
            f"{next(iter(known))!r}, those of the feedback like {next(iter(ids))!r} (id_model)"
        )


def _names(text: str) -> tuple[str, ...]:
    """The names of a comma-separated list, without repeats."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",")))


def _are_methods(text: str) -> str | None:
    from fabula.feedback.corrupting import ALL_METHODS

    unknown = [name for name in _names(text) if name not in ALL_METHODS]
    return f"{unknown[0]}: must be one of {', '.join(ALL_METHODS)}" if unknown else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorruptSettings(Settings):
    """How stories are corrupted."""

    methods: str = setting(
        "original,backtranslate,swap,delete",
        help="Corruptions to apply to each story, separated by commas; beyond the paper, for "
        "longer stories: name, and with `writer` fact, thread, motive.",
        unit="LIST",
        check=_are_methods,
    )
    out: Path = setting(help="Write the stories here (.jsonl); interrupted runs resume.")
    translator: str | None = setting(
        None,
        help="Translator to German and back: a language model as for `feedback elicit`, or "
        "marian[:THERE,BACK] (Helsinki-NLP's models, or folders).",
        unit="NAME",
        default_text="marian if its models are on this machine",
    )
    writer: str | None = setting(
        None,
        help="Language model, as for `feedback elicit`, that writes the faults of fact, thread and "
        "motive; what it writes is checked, and inserted at recorded places only.",
        unit="NAME",
    )
    rounds: int = setting(
        10, help="Number of times a story is translated and back.", check=Between(1)
    )
    per_set: int | None = setting(
        None, help="Draw up to N stories from each set (`by`).", check=Between(1)
    )
    by: str = setting("source", help="Field that names the set a story belongs to.", unit="FIELD")
    balanced: bool = setting(
        False,
        help="Keep only stories that every method can change, so that all methods use the same "
        "stories; with `per_set`, N such stories from each set.",
    )
    share: str | None = share_setting()
    restart: bool = restart_setting()
    seed: int = seed_setting()
    spending: calls.Spending = part(calls.Spending)

    def check_together(self) -> None:
        if self.balanced and self.share is not None:
            raise SettingsError("share", "cannot be used with `balanced`, which needs all stories")


@dataclass(frozen=True, slots=True, repr=False)
class Corrupted(Result):
    """How many stories of each method exist now, and what was left out."""

    out: Path
    n: Mapping[str, int]
    left_out: Sequence[LeftOut]
    repeated: Sequence[str]
    """Ids of stories whose text has already occurred, word for word."""
    unavailable: str | None = None
    """Why a method was left out altogether, and how to have it."""

    def lines(self) -> list[str]:
        lines = [f"{method}: {n:,}" for method, n in self.n.items()]
        ids: dict[tuple[str, str], list[str]] = {}
        for left in self.left_out:
            ids.setdefault((left.method, left.reason), []).append(left.story_id)
        for (method, reason), story_ids in sorted(ids.items()):
            shown = ", ".join(story_ids[:3]) + (", ..." if len(story_ids) > 3 else "")
            lines.append(f"left out of {method}: {len(story_ids):,}, since {reason} ({shown})")
        if n := len(self.repeated):
            lines.append(f"left out: {n:,} stories that are already included, word for word")
        if self.unavailable is not None:
            lines.append(self.unavailable)
        return [*lines, f"written: {self.out}"]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "out": str(self.out)}

    def lacking(self) -> str | None:
        return None if self.unavailable is None else ""


def corrupt(
    stories: Texts,
    settings: CorruptSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> Corrupted:
    """Corrupt STORIES: swap two sentences, delete one, or translate it and back ten times.

    Each row contains the corrupted text, the original, and exactly what was changed, as character
    positions in both. Stories that cannot be corrupted are left out and reported. Source: Rashkin
    et al. 2025, section 4.

    Beyond the paper, and only if named in `methods`: a character's name changes midway (name), or
    the model of `writer` adds two sentences that contradict each other (fact), an object that is
    never mentioned again (thread), or a motive and later its opposite (motive).

    Raises `InputError`, `ModelError`, `BusyError`. Without any translator the other methods are
    applied.
    """
    from fabula.feedback import corrupting
    from fabula.feedback.translating import best_offline_translator

    named = _names(settings.methods)
    chosen = tuple(method for method in corrupting.ALL_METHODS if method in named)
    read, repeated = corrupting.without_repeats(stories)
    whole = settings.per_set if settings.balanced else None
    drawn = None if settings.balanced else settings.per_set
    documents = corrupting.sample_sets(read, settings.by, drawn, settings.seed)
    share = share_of(settings.share, settings.out)
    documents = documents if share is None else list(share.of(documents))
    translator = settings.translator or best_offline_translator()
    unavailable = None
    if "backtranslate" in chosen and translator is None:
        unavailable = (
            "no back-translation: name a language model or marian (`translator`), and run this "
            "again"
        )
        chosen = tuple(method for method in chosen if method != "backtranslate")
        if not chosen:
            raise ModelError(unavailable)
    rounds, by = settings.rounds, settings.by
    plan = corrupting.CorruptPlan(chosen, rounds, settings.seed, settings.balanced, whole, by)
    n, left_out = _corrupt(documents, plan, translator or "", settings, progress, confirm)
    return Corrupted(settings.out, n, left_out, repeated, unavailable)


def _corrupt(
    documents: Sequence[Document],
    plan: CorruptPlan,
    translator: str,
    settings: CorruptSettings,
    progress: Progress,
    confirm: Confirm,
) -> tuple[dict[str, int], list[LeftOut]]:
    """How many rows of each method exist now, and what was left out."""
    from fabula.feedback import corrupting
    from fabula.feedback.translating import estimate_round_trips, is_model, open_translator
    from fabula.feedback.written_faults import WRITABLE, FaultWriter, estimate_faults
    from fabula.models.model_spec import open_model
    from fabula.text.pipeline import CHARACTERS, STRUCTURE, load_pipeline

    n: Counter[str] = Counter()
    left_out: list[LeftOut] = []
    out, restart = settings.out, settings.restart
    share = share_of(settings.share, out)
    inserted = [method for method in plan.methods if method in WRITABLE]
    with ExitStack() as stack:
        # Report what cannot be opened before the file is touched.
        terms = settings.spending.options(Ledger(rows_file(settings.share, out), restart))
        model = None
        if "backtranslate" in plan.methods:
            opened = open_translator(translator, terms)
            model = stack.enter_context(opened)
        writing = None
        if inserted:
            if settings.writer is None:
                wanted = ", ".join(inserted)
                raise SettingsError("writer", f"must name a language model, which writes {wanted}")
            writing = open_model(settings.writer, terms)
        rows_kept = kept_rows(out, corrupting.CORRUPTED, restart=restart, share=share)
        kept = stack.enter_context(rows_kept)
        kept.check_only({(f"{s.id}_{method}",) for s in documents for method in plan.methods})
        kept.begin()
        # All costs are confirmed before any model is called.
        ids, prices = {row["id"] for row in kept.kept()}, terms.prices
        if "backtranslate" in plan.methods and is_model(translator):
            texts = [s.text for s in documents if f"{s.id}_backtranslate" not in ids]
            confirm(translator, estimate_round_trips(texts, plan.rounds, prices.of(translator)))
        if settings.writer is not None and inserted:
            texts = [s.text for s in documents for name in inserted if f"{s.id}_{name}" not in ids]
            confirm(settings.writer, estimate_faults(texts, prices.of(settings.writer)))
        nlp = load_pipeline(CHARACTERS if "name" in plan.methods else STRUCTURE)
        writer = None
        if writing is not None:
            writer = stack.enter_context(FaultWriter(writing, plan.seed))
        progress.begin("corrupting", len(documents))
        for rows, failed in corrupting.corrupt_stories(documents, plan, nlp, model, kept, writer):
            n.update(row["method"] for row in rows)
            left_out += failed
            progress.advance(1)
    return dict(n), left_out


def _are_numbers(text: str) -> str | None:
    are_numbers = all(part.strip().isdecimal() for part in text.split(","))
    return None if are_numbers else f"{text}: write numbers such as 0,2"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElicitSettings(Settings):
    """How models are asked for feedback. The defaults are those of Rashkin et al. 2025."""

    prompts: str = setting(
        "all",
        help="full (a list, with a taxonomy of issues), list, sentence, spot; or those in the "
        "prompt file.",
        unit="LIST",
    )
    shots: str = setting(
        "0,2", help="Numbers of examples in the prompt.", unit="LIST", check=_are_numbers
    )
    prompt_file: Path | None = setting(
        None,
        help="Your own prompts (.toml), or the text of the paper (.txt, .md), whose appendix B has "
        "the published ones.",
    )
    out: Path = setting(help="Write the feedback here (.jsonl); interrupted runs resume.")
    temperature: float = calls.temperature_setting(0.7)
    max_tokens: int = calls.max_tokens_setting(512)
    share: str | None = share_setting()
    restart: bool = restart_setting()
    seed: int = seed_setting()
    models: calls.ModelSettings = part(calls.ModelSettings)


@dataclass(frozen=True, slots=True, repr=False)
class Elicited(calls.Written):
    """Feedback by models."""

    max_tokens: int

    @property
    def n_cut(self) -> int:
        """The number of answers that were longer than allowed."""
        return sum(bool(row.get("is_cut")) for row in self.asked)

    def lines(self) -> list[str]:
        lines = [f"{self.n:,} of {len(self.asked):,} answers, written: {self.out}"]
        lines += [f"missing: {n:,}, {explain(why)}" for why, n in self.missing.items()]
        if self.n_cut:
            lines.append(f"cut at {self.max_tokens} tokens: {self.n_cut:,}")
        return lines

    def to_json(self) -> dict[str, Any]:
        return calls.Written.to_json(self) | {"n_cut": self.n_cut}


def elicit(
    corrupted: Path,
    settings: ElicitSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> Elicited:
    """Ask models for feedback on the stories of CORRUPTED, which `feedback corrupt` wrote.

    Asks about every story with every prompt, with and without examples. Shows the number of calls
    and tokens before it starts, unless they are free. Source: Rashkin et al. 2025, section 4.

    Raises `InputError`, `ModelError`, `BusyError`.
    """
    from fabula.feedback import eliciting
    from fabula.models.base import Sampling

    file = settings.prompt_file
    prompts = eliciting.PROMPTS if file is None else eliciting.load_prompts(file)
    known = tuple(prompts.prompts)
    names = known if settings.prompts == "all" else _names(settings.prompts)
    if unknown := [name for name in names if name not in known]:
        raise SettingsError("prompts", f"{unknown[0]}: must be one of {', '.join(known)}")
    shots = tuple(dict.fromkeys(map(int, settings.shots.split(","))))
    effort = settings.models.reasoning_effort
    sampling = Sampling(settings.temperature, 1.0, settings.max_tokens, settings.seed, effort)
    plan = eliciting.ElicitPlan(prompts, names, shots, sampling)
    share = share_of(settings.share, settings.out)
    stories = eliciting.read_corrupted(corrupted)
    stories = list(stories if share is None else share.of(stories))
    with kept_rows(settings.out, eliciting.ANSWERS, restart=settings.restart, share=share) as kept:
        n_each = len(stories) * len(names) * len(shots)
        progress.begin("feedback", n_each * settings.models.n_models)
        ask = partial(eliciting.elicit, stories, plan=plan, rows=kept, meter=progress.advance)
        cost = partial(eliciting.estimate_grid, stories, plan)
        rows = calls.ask_models(settings.models, kept, ask, cost, confirm)
        kept.settle(rows)
    return Elicited(rows, rows_file(settings.share, settings.out), settings.max_tokens)


def crosses_of(text: str) -> list[tuple[str, ...]]:
    return [tuple(name.strip() for name in cross.split("*")) for cross in text.split(",")]


def are_crosses(text: str) -> str | None:
    from fabula.feedback.scores import DIMENSIONS

    unknown = [name for cross in crosses_of(text) for name in cross if name not in DIMENSIONS]
    return f"{unknown[0]}: must be one of {', '.join(DIMENSIONS)}" if unknown else None


_ONE_SENTENCE = frozenset(("sentence", "spot", "one sentence", "spot the problem"))
"""Prompts that ask for a single sentence, by our names and the paper's."""


@dataclass(frozen=True, slots=True)
class ScoreSettings(Settings):
    """How feedback is measured."""

    by: str = setting(
        "model,prompt,shots,method",
        help="Tables to print: dimensions, or crosses of them such as model*prompt; the JSON "
        "contains all.",
        unit="LIST",
        check=are_crosses,
    )
    out: Path | None = setting(
        None, help="Write the measures for every subset and cross here (.json)."
    )
    encoder: str | None = setting(
        None,
        help="Also measure BERTScore with the story, by the packaged encoder or the one in a "
        "folder (model.onnx, tokenizer.json).",
        unit="packaged|DIR",
        option="bertscore",
    )
    seed: int = seed_setting()
    people: tuple[Path, ...] = setting(
        (),
        help="People's answers about the same feedback (measurements, or the released "
        "human_ratings.jsonl): shows whether the measures agree with people.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class ScoredFeedback(Result):
    """The measures of all answers and of every subset of them."""

    subsets: Sequence[Subset]
    answers: Answers
    crosses: Sequence[tuple[str, ...]]
    """The dimensions of its tables."""
    validation: Mapping[str, Estimate]
    """By item, the correlation of a measure with people's answers; empty without people."""

    def tables(self) -> list[Block]:
        from fabula.feedback.tables import score_tables, validation_table

        return score_tables(self) + (validation_table(self.validation) if self.validation else [])

    def rows(self) -> list[Row]:
        """A row per subset."""
        return [
            {
                "where": dict(subset.where),
                **picked(subset, "n", "n_stories"),
                "values": {
                    name: picked(e, "value", "low", "high", "n") | {"n_stories": e.n_units}
                    for name, e in subset.values.items()
                },
            }
            for subset in self.subsets
        ]

    def to_json(self) -> dict[str, Any]:
        signature = self.subsets[0].values["repetition"].signature
        content: dict[str, Any] = {"signature": signature, "missing": self.answers.n_missing}
        content["subsets"] = self.rows()
        validation = {item: asdict(estimate) for item, estimate in self.validation.items()}
        return content | ({"validation": validation} if validation else {})


def score(
    answers: Sequence[Rows], settings: ScoreSettings, *, progress: Progress = SILENT
) -> ScoredFeedback:
    """Measure the feedback of ANSWERS: length, repetition, precision of "perfect as-is".

    By model, prompt, examples and corruption, and every cross of them, with intervals over stories.
    Source: Rashkin et al. 2025, section 5, Tables 1 and 6 to 9, appendix E.

    Raises `InputError` if a row lacks a field.
    """
    from fabula.feedback import scores
    from fabula.rubrics.load import load_rubric
    from fabula.text.feedback_pieces import feedback_id
    from fabula.text.pipeline import SENTENCES, load_pipeline, pipeline_parts

    rows = feedback_rows((source for given in answers for source in given.parts), whole=True)
    ids = [feedback_id(row) for row in rows]
    people = people_means(settings.people, load_rubric("feedback"), ids)
    progress.begin("measuring", len(rows))
    encoder = open_encoder(settings.encoder)
    nlp = load_pipeline(SENTENCES)
    measures = scores.read_answers(
        rows,
        one_sentence=_ONE_SENTENCE,
        count_sentences=scores.sentence_counter(nlp),
        pipeline=",".join(pipeline_parts(nlp).values()),
        similarity=None if encoder is None else scores.bertscore(encoder),
        encoder="" if encoder is None else encoder.name,
        meter=progress.advance,
    )
    subsets = list(scores.score_answers(measures))
    validation: dict[str, Estimate] = {}
    if any(people.values()):
        stories = dict(zip(measures.ids, map(str, measures.stories), strict=True))
        ours, seed, signature = scores.measured(measures), settings.seed, measures.signature
        validation = scores.validate(ours, people, stories, seed=seed, signature=signature)
    result = ScoredFeedback(subsets, measures, crosses_of(settings.by), validation)
    if settings.out is not None:
        write_whole(settings.out, (dump_json(result.to_json()) + "\n").encode())
    return result


def open_encoder(name: str | None) -> Encoder | None:
    """The encoder for BERTScore: `packaged`, the one in a folder, or none."""
    if name is None:
        return None
    from fabula.models.encoder import Encoder

    return Encoder(None if name == "packaged" else Path(name))


@dataclass(frozen=True, slots=True)
class FindSettings(Settings):
    """How to decide whether an answer finds the planted fault."""

    by: str = setting(
        "model",
        help="Tables to print: dimensions, or crosses of them such as model*prompt.",
        unit="LIST",
        check=are_crosses,
    )
    details: Path | None = setting(
        None, help="Write what was read from each answer here (.jsonl), to check or label."
    )
    rubric: str = setting(
        "feedback_fault",
        help="Rubric with the questions for judges; a .toml file with the same items may word "
        "them differently.",
        unit="NAME|FILE",
    )
    asking: Asking = part(Asking)
    models: calls.NoModelSettings = part(calls.NoModelSettings)
    out: Path | None = setting(
        Path("found"), help=f"{FOLDER_HELP} For judges (`models`).", unit="DIR"
    )
    restart: bool = restart_setting()
    labels: Labels | None = setting(
        None,
        help="People's answers about some of the feedback (document, item, rater, value; items "
        "found and asks): measures how often quotations and judges are right. A document is "
        "an answer, named as in `details`.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class FoundFaults(Result):
    """What the answers find, by quotation and by each judge."""

    readers: Sequence[Findings]
    """By quotation first, then by each judge."""
    scores: Mapping[str, Sequence[FindScore]]
    """By reader: over all answers, then by each cross, then by model and kind of fault."""
    pairs: Mapping[str, Sequence[Contrast]]
    accuracies: Sequence[ReaderAccuracy]
    crosses: Sequence[tuple[str, ...]]
    spent: Sequence[Spent]
    out: Path | None
    """The folder of the judges' answers."""

    def tables(self) -> list[Block]:
        from fabula.feedback.tables import finding_tables

        return finding_tables(self)

    def to_json(self) -> dict[str, Any]:
        readers = [
            {
                "by": reader.by,
                "signature": reader.signature,
                "missing": dict(Counter(reason for _, reason in reader.missing)),
                "subsets": [asdict(score) for score in self.scores[reader.by]],
                "pairs": [pair.to_json() for pair in self.pairs[reader.by]],
                "accuracy": [asdict(a) for a in self.accuracies if a.by == reader.by],
            }
            for reader in self.readers
        ]
        return {"readers": readers}

    def notices(self) -> list[str]:
        from fabula.judging.tables import spent_lines

        return spent_lines(self.spent)

    def written(self) -> list[Path]:
        if self.out is None or len(self.readers) == 1:
            return []
        return [self.out / "measurements.jsonl"]

    def rows(self) -> list[Row]:
        """One row per answer: what it points at, and what each judge says about it."""
        judged = {r.by: {a.id: a.found for a in r.answers} for r in self.readers[1:]}
        rows = []
        for answer in self.readers[0].answers:
            row: Row = {"id": answer.id, "story_id": answer.story, **answer.labels}
            row |= picked(answer, "names_fault", "found", "rule", "n_points")
            row["chance"] = None if answer.chance != answer.chance else answer.chance
            row |= {f"found_by_{by}": theirs.get(answer.id) for by, theirs in judged.items()}
            rows.append(row)
        return rows


def find(
    answers: Sequence[Rows],
    settings: FindSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
    functions: Sequence[FunctionModel] = (),
) -> FoundFaults:
    """Score which ANSWERS find the faults that `feedback corrupt` planted.

    Shows recall by kind of fault, false alarms on the original stories, precision and F1, with
    intervals over stories, and compares models on the stories that all of them answered. An answer
    finds a fault if it points at the recorded place; with `models` a judge reads it too. Refusals
    and unreadable answers are missing, and counted.

    Raises `InputError`, `ModelError`, `BusyError`.
    """
    from fabula.feedback import fault_matches
    from fabula.rubrics.load import load_rubric
    from fabula.text import feedback_pieces as pieces
    from fabula.text import pipeline, sentences

    rows = feedback_rows((source for given in answers for source in given.parts), whole=True)
    labels: list[Measurement] = []
    if settings.labels is not None:
        labels = settings.labels.read(load_rubric(settings.rubric))
        ids = [pieces.feedback_id(row) for row in rows]
        check_overlap(ids, {label.document_id: label for label in labels}, "labels")
    progress.begin("reading answers", len(rows))
    nlp = pipeline.load_pipeline(pipeline.STRUCTURE)
    findings = fault_matches.read_findings(
        rows,
        lambda text: sentences.sentence_spans(text, nlp),
        pipeline=",".join(pipeline.pipeline_parts(nlp).values()),
        meter=progress.advance,
    )
    if not any(answer.found is not None for answer in findings.answers):
        raise InputError(
            "no answer about a changed story is readable, so there is nothing to measure"
        )
    judged, spent = _judged(rows, findings, settings, progress, confirm, functions)
    readers, seed = [findings, *judged], settings.asking.seed
    crosses = crosses_of(settings.by)
    all_crosses = list(dict.fromkeys([(), *crosses, ("method",), ("model", "method")]))
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for label in labels:
        if label.value is not None:
            votes[label.item][label.document_id] += 1 if label.value == "Yes" else -1
    # What the majority says, by item and answer; nothing for ties.
    truth = {item: {id_: n > 0 for id_, n in by_id.items() if n} for item, by_id in votes.items()}
    scores = {r.by: list(fault_matches.score_findings(r, all_crosses)) for r in readers}
    pairs = {r.by: fault_matches.compare_models(r, seed=seed) for r in readers}
    accuracies = [a for r in readers for a in fault_matches.reader_accuracy(r, truth)]
    result = FoundFaults(readers, scores, pairs, accuracies, crosses, spent, settings.out)
    if settings.details is not None:
        write_rows(settings.details, result.rows())
    return result


def _judged(
    rows: Sequence[Row],
    findings: Findings,
    settings: FindSettings,
    progress: Progress,
    confirm: Confirm,
    functions: Sequence[FunctionModel],
) -> tuple[list[Findings], list[Spent]]:
    """The answers as each judge reads them; those without points are not given to it."""
    if not (settings.models.models or functions):
        return [], []
    from fabula.judging.prompts import feedback_template
    from fabula.rubrics.load import load_rubric
    from fabula.text.feedback_pieces import feedback_documents

    asking, out = settings.asking, settings.out
    how = judging_of(settings.rubric, asking, settings.models, out, settings.restart)
    plan = plan_of(how.judging, template=feedback_template(settings.asking.style))
    wanted = [item.id for item in load_rubric("feedback_fault").items]
    if [item.id for item in plan.rubric.items] != wanted:
        raise InputError(f"{settings.rubric}: its items must be {', '.join(wanted)}")
    asked = {answer.id for answer in findings.answers if answer.names_fault}
    documents = [d for d in feedback_documents(rows, "the answers") if d.id in asked]
    if not documents:
        return [], []
    run = ask_judges(documents, plan, how, progress=progress, confirm=confirm, functions=functions)
    readings = []
    for rater, answers in by_rater(run.said).items():
        verdicts: dict[str, dict[str, str | None]] = {}
        for answer in answers:
            verdict = verdicts.setdefault(answer.document_id, {})
            verdict[answer.item] = None if answer.value is None else str(answer.value)
        readings.append(findings.as_judged(rater, verdicts, answers[0].signature))
    return readings, list(run.spent)


@dataclass(frozen=True, slots=True)
class RateSettings(Settings):
    """How a model is asked about feedback, and the people to compare it with."""

    rubric: str = setting(
        "feedback",
        help="Rubric with the questions, feedback or feedback_category; a .toml file with the "
        "same items may word them differently.",
        unit="NAME|FILE",
    )
    asking: Asking = part(Asking)
    models: calls.ModelSettings = part(calls.ModelSettings)
    out: Path | None = setting(
        None, help=FOLDER_HELP, unit="DIR", default_text="rated; of categories, labelled"
    )
    restart: bool = restart_setting()
    people: tuple[Path, ...] = setting(
        (),
        help="People's answers about the same feedback (measurements, or the released "
        "human_ratings.jsonl): shows how far the rater agrees with them.",
    )
    labels: Labels | None = setting(
        None,
        help="People's labels (.jsonl: id, labels), to measure how often the model assigns the "
        "right category; an id is that of the feedback and its model, as in "
        "s1_swap_spot_0_MODEL.",
    )
    plot: Path | None = plot_setting(
        "Draw the categories' shares by corruption here (.svg, .pdf or .png)."
    )


@dataclass(frozen=True, slots=True, repr=False)
class AnsweredFeedback(Result):
    """What each rater or labeller says about each piece of feedback, and how often it is right."""

    judged: Judged
    left_out: Mapping[str, int]
    """Rows without feedback, by reason; raters were not asked about them."""
    out: Path
    agreements: Mapping[str, Mapping[str, Mapping[str, Estimate]]] | None = None
    """By rater and item, `similarity` and `correlation`; without people there are no items. None of
    labellers."""
    labelled: Mapping[str, tuple[Sequence[CategoryShares], Estimate | None]] = field(
        default_factory=dict
    )
    """By labeller: shares by writer and corruption, and accuracy if people labelled."""

    def tables(self) -> list[Block]:
        from fabula.raters import tables as rating_tables
        from fabula.raters.ratings import group_estimates, mean_scores, score_table

        parts: list[Block] = []
        answers, documents = by_rater(self.judged.said), self.judged.documents
        for rater, agreement in (self.agreements or {}).items():
            rated, signature = answers[rater], answers[rater][0].signature
            means = mean_scores(score_table(rated, self.judged.plan.rubric))
            story_of = _stories(documents).__getitem__
            parts.append(f"contains answers by {rater}, who is not a person")
            for name in rating_tables.FIELDS:
                by = {document.id: str(document.meta.get(name, "any")) for document in documents}
                groups = group_estimates(means, by.get, story_of, signature=signature)
                if len(groups) > 1 or name == "model":
                    parts += [*rating_tables.estimates_table(name, groups), ""]
            if agreement:
                parts += rating_tables.people_table(rater, agreement)
            else:
                unknown = "the rater's agreement with people is unknown"
                parts.append(f"no answers by people were given (`people`): {unknown}")
            missing = Counter(answer.missing_reason for answer in rated if answer.missing_reason)
            n_spared = missing.pop("not_asked", 0)
            parts += [f"no answer: {n:,}, {explain(str(w))}" for w, n in sorted(missing.items())]
            if n_spared:
                parts.append(f"not asked, since earlier answers rule it out: {n_spared:,}")
            parts.append(signature)
        categories = self.judged.plan.rubric.items[0].scale.options
        for rater, (shares, accuracy) in self.labelled.items():
            signature = answers[rater][0].signature
            parts += rating_tables.category_tables(shares, categories, accuracy, signature)
        left_out = (f"left out: {n:,} answers, {explain(why)}" for why, n in self.left_out.items())
        return [*parts, *left_out]

    def rows(self) -> list[Row]:
        """The measurements."""
        return self.judged.rows()

    def to_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {"measurements": self.rows()}
        if self.agreements is not None:
            content["agreement_with_people"] = {
                rater: {
                    item: {"n": pair["similarity"].n, **{name: asdict(pair[name]) for name in pair}}
                    for item, pair in by_item.items()
                }
                for rater, by_item in self.agreements.items()
            }
        else:
            content["labels"] = {
                rater: {
                    "shares": [asdict(share) for share in shares],
                    "accuracy": accuracy and asdict(accuracy),
                }
                for rater, (shares, accuracy) in self.labelled.items()
            }
        return {**content, "left_out": dict(self.left_out)}

    def notices(self) -> Sequence[str]:
        return self.judged.notices()

    def written(self) -> list[Path]:
        return [self.out / "measurements.jsonl"]


def rate(
    feedback: Sequence[Rows],
    settings: RateSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> AnsweredFeedback:
    """Have a model answer the seven questions of the human form about each piece of FEEDBACK.

    FEEDBACK is what `feedback elicit` wrote. The last question, whether following it would undo the
    planted change, is asked with the original and the recorded change in view. A model does not
    replace people: if `people` has answers too, the model's agreement with them is shown beside its
    means. Source: Rashkin et al. 2025, section 6 and appendix D.

    With the rubric feedback_category the model assigns each piece to one of nine categories.
    FEEDBACK may then be a file from `study export`, of which people's own feedback is used. Other
    rows by people need `id`, `feedback`, and `method`, the corruption of their story; rows that
    name no model count as written by people. How often the model is right is measured on `labels`,
    and unknown without them. Source: Rashkin et al. 2025, appendix G, Figures 5 and 6.

    Raises `InputError`, `SettingsError`, `ModelError`, `BusyError`.
    """
    from fabula.judging.prompts import feedback_template
    from fabula.raters import ratings
    from fabula.raters.tables import save_categories
    from fabula.text.feedback_pieces import count_missing, feedback_documents

    is_labelling = _is_labelling(settings)
    out = settings.out or Path("labelled" if is_labelling else "rated")
    documents, names, left_out = list[Document](), list[str](), Counter[str]()
    for source in (source for given in feedback for source in given.parts):
        rows = feedback_rows([source])
        names.append(str(source) if isinstance(source, Path) else source[1])
        documents += feedback_documents(rows, names[-1], with_story=not is_labelling)
        left_out.update(count_missing(rows))
    if not documents:
        raise InputError(f"{', '.join(names)}: contains no feedback")
    how = judging_of(settings.rubric, settings.asking, settings.models, out, settings.restart)
    template = feedback_template(settings.asking.style, with_story=not is_labelling)
    plan = plan_of(how.judging, template=template)
    ids = [document.id for document in documents]
    people = {} if is_labelling else people_means(settings.people, plan.rubric, ids)
    gold: dict[str, frozenset[str]] = {}
    categories = plan.rubric.items[0].scale.options
    if (labels := settings.labels) is not None:
        named = str(labels.path or labels.name)
        gold = ratings.read_gold(Rows.of(labels.source), categories, named)
        check_overlap(ids, gold, "labels")
    note_output("out", out)
    judged = ask_judges(documents, plan, how, progress=progress, confirm=confirm)
    story_of = _stories(documents).__getitem__
    if not is_labelling:
        agreements = ratings.agreements_with_people(
            judged.said, people, plan.rubric, story_of, seed=plan.seed
        )
        return AnsweredFeedback(judged, dict(left_out), out, agreements)
    groups = {
        d.id: (str(d.meta.get("model", "people")), str(d.meta.get("method", "any story")))
        for d in documents
    }
    labelled = {}
    for rater, answers in by_rater(judged.said).items():
        chosen = {a.document_id: None if a.value is None else str(a.value) for a in answers}
        terms: Any = {"signature": answers[0].signature}
        shares = ratings.category_shares(chosen, categories, groups.__getitem__, story_of, **terms)
        right = ratings.label_accuracy(chosen, gold, story_of, **terms) if gold else None
        labelled[rater] = shares, right
    if settings.plot is not None and labelled:
        save_categories(next(iter(labelled.values()))[0], categories, settings.plot)
    return AnsweredFeedback(judged, dict(left_out), out, labelled=labelled)


def _is_labelling(settings: RateSettings) -> bool:
    """Whether the rubric asks for categories. Raises `InputError`, `SettingsError`."""
    from fabula.rubrics.load import load_rubric

    items = {
        name: [item.id for item in load_rubric(name).items]
        for name in ("feedback", "feedback_category")
    }
    asked = [item.id for item in load_rubric(settings.rubric).items]
    if asked not in items.values():
        known = " or ".join(f"{name} ({', '.join(ids)})" for name, ids in items.items())
        raise InputError(
            f"{settings.rubric}: its items are not those of {known}; your own rubric may change "
            "only their wording"
        )
    is_labelling = asked == items["feedback_category"]
    for name in ("labels", "plot"):
        if getattr(settings, name) is not None and not is_labelling:
            raise SettingsError(name, "is only for the categories: `rubric` feedback_category")
    if settings.people and is_labelling:
        raise SettingsError("people", "cannot be used with categories, only `labels`")
    return is_labelling


def _stories(documents: Sequence[Document]) -> dict[str, str]:
    """The story that each piece is about."""
    return {document.id: str(document.meta.get("story_id", document.id)) for document in documents}
