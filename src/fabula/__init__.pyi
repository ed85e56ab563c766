# Generated from the jobs by `make docs`.
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from fabula.models.base import AskFunction
from fabula.cli.rerun import Rerun
from fabula.continuation.job import ComparedSystems
from fabula.continuation.job import Continuations
from fabula.continuation.job import Passages
from fabula.continuation.job import Trained
from fabula.core.errors import BusyError as BusyError
from fabula.core.errors import CallFailed as CallFailed
from fabula.core.errors import CorpusError as CorpusError
from fabula.core.errors import FabulaError as FabulaError
from fabula.core.errors import InputError as InputError
from fabula.core.errors import LookupFailed as LookupFailed
from fabula.core.errors import MixError as MixError
from fabula.core.errors import ModelError as ModelError
from fabula.core.errors import WorkersEnded as WorkersEnded
from fabula.core.frames import to_arrow as to_arrow
from fabula.core.frames import to_pandas as to_pandas
from fabula.core.frames import to_polars as to_polars
from fabula.core.scales import Scale as Scale
from fabula.core.settings import Settings as Settings
from fabula.core.settings import SettingsError as SettingsError
from fabula.core.settings import setting as setting
from fabula.core.types import Document as Document
from fabula.core.types import Estimate as Estimate
from fabula.core.types import Item as Item
from fabula.core.types import Measurement as Measurement
from fabula.core.types import Rubric as Rubric
from fabula.core.types import Signature as Signature
from fabula.core.types import Span as Span
from fabula.feedback.job import AnsweredFeedback
from fabula.feedback.job import Corrupted
from fabula.feedback.job import Elicited
from fabula.feedback.job import FoundFaults
from fabula.feedback.job import ScoredFeedback
from fabula.groups.job import Alike
from fabula.groups.job import Compared
from fabula.groups.job import Phrases
from fabula.jobs.given import read as read
from fabula.jobs.models import WrittenStories
from fabula.jobs.registry import register as register
from fabula.jobs.result import Result
from fabula.jobs.result import Result as Result
from fabula.judging.agreement import Agreements
from fabula.judging.agreement import Calibration
from fabula.judging.agreement import CorrectedRun
from fabula.judging.agreement import GroupedReasons
from fabula.judging.job import Judged
from fabula.judging.panel_size import Plan
from fabula.judging.rubrics import Rubrics
from fabula.judging.rubrics import WrittenRubric
from fabula.linguistic.job import Profiles
from fabula.models.base import FunctionModel as FunctionModel
from fabula.novelty.detection import Detector
from fabula.novelty.detection import DetectorVerdicts
from fabula.novelty.detection import Probabilities
from fabula.novelty.held_out import HeldOut
from fabula.novelty.job import OriginalityResult
from fabula.reference.job import BuiltCorpus
from fabula.reference.job import ReferenceInfo
from fabula.reference.search import Reference as Reference
from fabula.replicate.job import Replicated
from fabula.review.job import MeasuredGroup
from fabula.review.job import Reported
from fabula.rubrics.load import load_rubric as load_rubric
from fabula.stories.job import Drawn
from fabula.studies.job import Copied
from fabula.studies.job import DesignedStudy
from fabula.studies.job import Exported
from fabula.studies.job import Invited
from fabula.studies.job import PeopleDone
from fabula.studies.job import StudyAnalysis
from fabula.writer.setup import SetUp

Texts = Any
__version__: str

def report(
    texts: Texts,
    *,
    levels: str | Sequence[float] | None = None,
    match: Literal['verbatim', 'near'] = 'verbatim',
    jobs: int | None = None,
    reference: str | Path | Reference | Sequence[str | Path | Reference] = (),
    exclude: Literal['none', 'auto'] = 'none',
    exclude_same: str | None = None,
    fluency_model: str = 'local',
    grammar: str = 'harper',
    dictionary: str | Path | None = None,
    without: str | Sequence[str] = (),
    with_: str | Sequence[str] = (),
    only: Literal['lines', 'book', 'profile', 'feedback', 'fluency', 'originality', 'verdicts'] | None = None,
    people: int = 12,
    points: int = 7,
    temperature: float = 0.7,
    by_chapter: bool = False,
    since: str | Path | None = None,
    points_file: str | Path | None = None,
    by: str | None = None,
    against_each_other: bool = False,
    assignment: str | Path | None = None,
    rubric: str = 'ttcw',
    style: Literal['reason-first', 'verdict-first'] = 'reason-first',
    samples: int = 5,
    groups: str | Path | Sequence[str | Path] = (),
    phrases: str | Path | Sequence[str | Path] = (),
    labels: Any | None = None,
    judge: Any | None = None,
    model: str | Sequence[str] = (),
    parallel: int | None = None,
    max_retries: int = 5,
    timeout: int | None = None,
    reasoning_effort: Literal['low', 'medium', 'high'] | None = None,
    cache: bool = False,
    batch: bool = False,
    structured: bool | None = None,
    price: str | None = None,
    max_cost: float | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    comments: str | Path | None = None,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> Reported:
    r"""Show everything that can be said about TEXTS on one page: borrowing, style, and more.

    Runs every instrument that can run, and says what was left out and how to get it. With `model`,
    a model judges by the Torrance tests and says what to revise; its answers are saved beside the
    page, so that you do not pay twice for an interrupted run. Several texts are shown side by side.

    With `only`, one instrument prints all that it has to say. lines: places in a draft to look at,
    each with the reason; a note is not a grade, and repetition can be deliberate. book: length,
    pace, speech, repetition and people by chapter, or by stretches where there are no headings.
    feedback: what one model would change in your draft, what matters most first; points that quote
    words not in the draft are dropped and counted, and so is praise, and the embedded model is far
    too small for good advice. Or profile, fluency, originality, verdicts. All are for English but
    originality, verdicts and feedback.

    Raises `InputError`, also for a text without the field `by`, a cost limit without a price and
    `judge` beside a model that judges, and `CorpusError` for a reference that cannot be opened.

    Parameters:
        texts: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        levels: Values of L that the Creativity Index sums. [default: 5-12; 5-7 against texts by
            models]
        match: near: also find matches in other words.
        jobs: Number of processes to use; results do not depend on it. [default: all processors]
        reference: Corpus to measure originality against: its folder or s3:// address, http://... if
            it is served, or infinigram:NAME; repeat it to search several as one.
        exclude: auto: leave out documents of the reference that copy or quote the text.
        exclude_same: Leave out documents whose FIELD equals the text's, such as author or
            prompt_id; texts that share it are not compared with each other either.
        fluency_model: Model used for surprisal (with fluency): local (the embedded model) or a
            .gguf file.
        grammar: harper, languagetool (its server, as languagetool@URL if not on port 8081), or
            none.
        dictionary: Words that are never noted as spelling or as a name: a text file, a word a line.
        without: Leave an instrument out: originality, profile, lines, verdicts, feedback, book,
            diversity (of several texts), or one that another package adds; or a kind of note on
            lines, such as grammar; repeat it for several.
        with_: Add what is off by default: fluency; proofreading (the embedded model reads all
            words, not only suspected ones, of texts of up to 10,000 words: 8 to 14 s per 1,000); or
            echo (a kind of note on lines that is wrong more often than right); repeat for several.
        only: Run one instrument alone, and print all that it has to say.
        people: book, alone: show the N people named most often (0: all).
        points: feedback: maximum number of points per reading.
        temperature: Sampling temperature.
        by_chapter: feedback: ask about each chapter of a book by itself, then about contradictions
            between chapters.
        since: feedback: the `points_file` of an earlier draft; shows which of its points are
            resolved.
        points_file: feedback: keep the points here (.jsonl), for `since` of the next draft; answers
            saved beside it (FILE with .answers before its ending) are not asked for again.
        by: Correct verdicts in groups by this field: author, model, ... (`fabula compare` compares
            groups).
        against_each_other: Compare each text with all the others, as in a class: what it shares,
            how long the longest passage is, and with whom; in addition to `reference`, if any are
            named.
        assignment: With `against_each_other`: a file with the wording that all texts were given;
            runs of five or more of its words count neither as shared nor as borrowed.
        rubric: Rubric that the models judge by (with `model`).
        style: Ask for reasons before the verdict, or after it (faster and cheaper).
        samples: Ask each model N times for feedback.
        groups: Additional reference groups, as `fabula reference group` writes them.
        phrases: Mark the phrases in this list: the file that `fabula phrases --out` wrote, or a
            JSON list of phrases, or of [phrase, count]; repeat it for several.
        labels: People's labels for some of the texts, drawn at random: shows an estimate of what
            people would have said about all texts beside what the models say (with `model`).
        judge: Show the verdicts of this run of `fabula judge`, in place of asking `model`.
        model: local (the embedded model), a .gguf file, the URL of a server with OpenAI's protocol
            (URL#name, or URL,URL#name for several servers of one model), or provider/model as in
            Inspect AI: openai/..., anthropic/..., google/..., vllm/..., ollama/...; repeat it to
            ask several.
        parallel: Concurrent calls, for each copy or server. [default: 1 local, 10 elsewhere]
        max_retries: Retries of a failed call (hosted models).
        timeout: Timeout of one attempt at a call (hosted models). [default: the timeout of the
            provider's client]
        reasoning_effort: How long reasoning models think (hosted models); `max_tokens` includes the
            thinking. [default: the model's own]
        cache: Use Inspect's cache (hosted models).
        batch: Use the provider's batch mode: cheaper, slower.
        structured: Constrain hosted models to a JSON schema. [default: models known to follow one]
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
        seed: Seed of all random draws; the same seed gives the same bytes.
        out: Write the page here. [default: report.html, but none with `only`]
        comments: Write the findings as comments into a Word document (.docx), which keeps the
            formatting of a .docx draft.
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def desk(
    *,
    jobs: int | None = None,
    reference: str | Path | Reference | Sequence[str | Path | Reference] = (),
    dir: str | Path | None = None,
    port: int = 8765,
    open: bool = True,
) -> Result:
    r"""Open the desk: a page on this machine where you drop a draft and read its report.

    The desk can be reached from this machine only. Nothing leaves the machine unless you name a
    hosted model, an index on the web or a reference served elsewhere; the desk then says first what
    it sends, and where to.

    Raises `InputError`.

    Parameters:
        jobs: Number of processes to use; results do not depend on it. [default: all processors]
        reference: Corpus offered for comparison.
        dir: Folder where drafts are kept. [default: a folder of the current user]
        port: Port to listen on.
        open: Open the page in the browser.
    """

def setup(
    sets: str | Sequence[str] | None = None,
    *,
    price: str | None = None,
    source: Literal['auto', 'maker', 'index'] = 'auto',
    mirror: str | None = None,
    dry_run: bool = False,
    model: str | Sequence[str] = (),
    rubric: str = 'ttcw',
    words: int = 1500,
) -> SetUp:
    r"""Fetch the model files that instruments need; without SETS, list the models that can judge.

    nlp: spaCy's English pipeline and a sentence encoder, for profile, near matches, lines and
    continuations. local: the small language model that comes with Fabula as a demonstration, and
    the encoder. all: everything. Files that are already installed are kept.

    Says what is fetched from where, and asks first. Each file is checked against a SHA-256 in this
    version of Fabula. What is complete is not downloaded again.

    Without SETS, lists the available models, what is known about each as a judge, and its cost.
    Looks for the embedded model, servers at the usual ports of this machine (Ollama, LM Studio,
    llama.cpp, vLLM), and providers whose key is set. With `model`, lists only these.

    Raises `InputError`, `ModelError`, also if no source has a file with the expected digest, and
    `BusyError` if another process is fetching it. Partial downloads are kept for the next run.

    Parameters:
        sets: str | Sequence[str] | None
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        source: maker: where the model's maker publishes it; index: your package index, by your pip
            or uv; auto: the maker, then the index.
        mirror: Fetch from this address in place of the makers' hosts; paths and digests stay.
        dry_run: Show what would be fetched, without fetching it.
        model: Without SETS: list this model only.
        rubric: Without SETS: rubric that trust and cost refer to.
        words: Without SETS: length of the story that costs are estimated for, in words.
    """

def originality(
    texts: Texts,
    reference: str | Path | Reference | Sequence[str | Path | Reference],
    *,
    levels: str | Sequence[float] | None = None,
    match: Literal['verbatim', 'near'] = 'verbatim',
    preset: Literal['paper'] | None = None,
    threshold: float | None = None,
    meaning: float | None = None,
    bits: float | None = None,
    stop_words: str | None = None,
    vectors: str | None = None,
    exclude: str = 'none',
    exclude_same: str | None = None,
    exclude_model: str | None = None,
    spread: int = 0,
    cite: int = 3,
    parallel: int = 8,
    max_retries: int = 5,
    out: str | Path | None = None,
    share: str | None = None,
    restart: bool = False,
    price: str | None = None,
    max_cost: float | None = None,
    jobs: int | None = None,
    engine: Literal['local', 'ray'] = 'local',
    address: str | None = None,
    html: str | Path | None = None,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> OriginalityResult:
    r"""Measure how original TEXTS are: L-uniqueness, the Creativity Index, and every borrowed span.

    The L-uniqueness of a text is the share of its words outside any run of L or more words found in
    the reference; the Creativity Index is the sum of L-uniqueness over the levels. With `out`,
    interrupted runs resume. Source: Lu et al. 2024.

    Raises `InputError`, `CorpusError`, `ModelError`. A text whose look-up failed has no score, and
    its row says why.

    Parameters:
        texts: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        levels: Values of L that the Creativity Index sums. [default: 5-12; 5-7 against texts by
            models]
        match: near: also find matches in other words.
        reference: Corpus to compare with: its folder, its address (s3://, gs://, or
            https://.../manifest.json), which is fetched once, or the http://... address where
            `fabula reference serve` serves it (FABULA_REFERENCE_TOKEN holds the token); repeat it
            to search several as one. Or a web-scale index: infinigram:NAME[@URL] over HTTP (`fabula
            reference info` lists the names; FABULA_INFINIGRAM_URL sets your own server; infinigram-
            mini:NAME@URL is one that compares characters), or infinigram-index:PATH on this machine
            (PATH#tokenizer.json if the tokenizer is elsewhere).
        preset: near: the published search, in a corpus on this machine: passages by BM25, word
            mover similarity of 0.95.
        threshold: Minimum similarity of two words. [default: 0.45]
        meaning: Minimum cosine of the spans' sentence vectors; 0 turns the check off. [default:
            0.5]
        bits: Minimum score of a match, in bits above chance. [default: 22]
        stop_words: Words that do not count as content words. [default: english]
        vectors: Word vectors: a .vec or GloVe file, or a Hugging Face model's folder. [default:
            those of the sentence encoder]
        exclude: Documents of the reference to leave out: auto, those that copy or quote the text
            (for published texts, which may be in the reference); or a file with one id per line.
        exclude_same: Also leave out documents whose FIELD equals the text's, such as author or
            prompt_id; id, if the reference contains the texts themselves.
        exclude_model: After `exclude` auto, ask this model about documents that the rule leaves
            undecided.
        spread: Show how uniqueness falls when only the best 1, 2, ... N documents may be used.
        cite: Number of sources to name for each borrowed span.
        parallel: Concurrent look-ups.
        max_retries: Retries of a failed look-up.
        out: Write scores here, one JSON row per text; interrupted runs resume.
        share: Do only the I-th of N shares, as in 3/8, on any machine; when all are done, the same
            command without this option joins them.
        restart: Start over, ignoring what is there.
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
        jobs: Number of processes to use; results do not depend on it. [default: all processors]
        engine: ray: on a Ray cluster, or on `jobs` processes of one started for this command.
        address: ray: the cluster, as `ray start` prints it; auto for one that runs on this machine.
            [env: RAY_ADDRESS]
        html: Write an HTML page of the results here.
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def profile(
    texts: Texts,
    *,
    out: str | Path | None = None,
    html: str | Path | None = None,
    plot: str | Path | None = None,
    grammar: str = 'harper',
    jobs: int | None = None,
    engine: Literal['local', 'ray'] = 'local',
    address: str | None = None,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> Profiles:
    r"""Profile TEXTS: rhythm of sentences, dialogue, rarity of words, grammar, repetition.

    English only. A metric that cannot be computed is missing, with its reason.

    Raises `InputError`, and `ModelError` if the language pipeline is not installed.

    Parameters:
        texts: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        out: Write a row for each text here (.jsonl).
        html: Write a page here: rhythm, rare words, repeated phrases.
        plot: Draw rhythm and rarity for up to 12 texts here (.svg, .pdf or .png).
        grammar: harper, languagetool (its server, as languagetool@URL if not on port 8081), or
            none.
        jobs: Number of processes to use; results do not depend on it. [default: all processors]
        engine: ray: on a Ray cluster, or on `jobs` processes of one started for this command.
        address: ray: the cluster, as `ray start` prints it; auto for one that runs on this machine.
            [env: RAY_ADDRESS]
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def diversity(
    texts: Texts,
    *,
    words: int | None = None,
    by: str | None = None,
    prompt: str | None = None,
    baseline: str | None = None,
    each: int | None = None,
    with_: Literal['templates', 'embeddings'] | Sequence[Literal['templates', 'embeddings']] = (),
    encoder: str | Path | None = None,
    phrases: int = 10,
    pairs: int = 0,
    permutations: int = 1000,
    seed: int = 0,
    jobs: int | None = None,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> Alike:
    r"""Measure how alike the TEXTS of a group are, and compare groups.

    Every text is cut to the same number of words, and the same number of texts from every group is
    compared. Shows the share of n-grams that also occur in another text, how far the texts compress
    together, self-BLEU, self-repetition and distinct n-grams, with 95 % intervals and permutation
    tests; the phrases that most texts of a group share; and with `pairs` who wrote like whom.
    Sources: Shaib et al. 2024, Li et al. 2016, Zhu et al. 2018, Salkar et al. 2022.

    Raises `InputError` if a text lacks a field, if no group has two texts that are long enough, or
    if SciPy (extra `[stats]`) is not installed.

    Parameters:
        texts: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        words: Cut every text to N words; shorter ones are left out. [default: the length that nine
            tenths of each group reach]
        by: Field to group the texts by, such as author or model. [default: all texts are one group]
        prompt: Field that holds a text's prompt, or the prompt's id: texts are compared prompt by
            prompt, and words of the prompt do not count as shared.
        baseline: Compare every group with this one only.
        each: Compare N texts of each group at a time. [default: as many as the smallest group has]
        with_: Also measure templates of parts of speech (English; needs `nlp`), or the spread of
            sentence vectors (needs `local`).
        encoder: Sentence encoder: a folder with model.onnx and tokenizer.json. [default: MiniLM,
            packaged]
        phrases: Show the N phrases that each group shares most.
        pairs: Show the N pairs of texts with the most words in common.
        permutations: Number of permutations in a test.
        seed: Seed of all random draws; the same seed gives the same bytes.
        jobs: Number of processes to use; results do not depend on it. [default: all processors]
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def compare(
    results: Any,
    by: str,
    *,
    unnamed: str | None = None,
    texts: Any | None = None,
    cluster: str | None = None,
    baseline: str | None = None,
    plot: str | Path | None = None,
    seed: int = 0,
) -> Compared:
    r"""Compare groups of texts in RESULTS: rows that `originality`, `profile` or `detect score`
    wrote, runs of `judge`, exports of a study, one or several together.

    Shows the mean of each number in each group of `by` with a 95 % interval, and for each pair of
    groups the difference, the Mann-Whitney test (whether texts of A tend to be above those of B;
    not whether means differ), and Holm's correction over everything that is shown. With `cluster`,
    intervals are over clusters and all tests are permutation tests of means: they permute texts
    within a cluster that the groups share, such as a prompt that all wrote to, and whole clusters
    otherwise. Three groups or more are tested all at once too (Kruskal-Wallis). The difference of
    the Creativity Index is also in per cent, (A - B) / B.

    Numbers that were not measured in the same way are refused.

    Raises `InputError` and `MixError`.

    Parameters:
        results: a path, a result, a frame, rows, or several of them
        by: Field to group the texts by, such as author or model; for scores of originality also
            `file`, the score file.
        unnamed: Name of the group of texts that lack this field, such as human.
        texts: The texts that were measured, for fields that rows lack.
        cluster: Count texts that share this field (a prompt, an author) as one; near-duplicates
            always count as one.
        baseline: Compare every group with this one only.
        plot: Draw curves and distributions here (.svg, .pdf or .png).
        seed: Seed for the permutations.
    """

def phrases(
    a: Texts,
    b: Texts | None = None,
    *,
    words: int | None = None,
    by: str | None = None,
    of: str | None = None,
    against: str | None = None,
    prompt: str | None = None,
    longest: int = 5,
    with_: Literal['templates'] | Sequence[Literal['templates']] = (),
    p: float | None = None,
    background: str | Sequence[str] = (),
    top: int = 20,
    out: str | Path | None = None,
    seed: int = 0,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> Phrases:
    r"""List the phrases that texts of A use more often than texts of B, and B more than A.

    A and B are files or folders; or, with `by`, A alone, whose texts are divided by a field. Texts
    are cut to the same length. A listed phrase occurs in more texts of its group than chance
    explains: words within one text do not count as independent. A phrase that hardly occurs outside
    a longer one is left out. It does not detect who wrote a text. Source: Monroe, Colaresi and
    Quinn 2008.

    Raises `InputError` if a text lacks its prompt, or a group has fewer than two texts that are
    long enough, `CorpusError` for a background that cannot be opened, `LookupFailed` for one that
    is not responding.

    Parameters:
        a: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        b: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        words: Cut every text to N words; shorter ones are left out. [default: the length that nine
            tenths of each group reach]
        by: Field that divides the texts into both groups, such as label.
        of: Group A of the field, or without `by` the name of A. [default: the first of two]
        against: Group B of the field, or without `by` the name of B. [default: all texts that are
            not in A]
        prompt: Field that holds a text's prompt, or the prompt's id: texts are compared prompt by
            prompt, and phrases of three words or more that occur in the prompt do not count.
        longest: Longest phrase, in words.
        with_: Also compare templates of parts of speech (English; needs `nlp`).
        p: List only phrases whose p after Holm's correction is at most this; 1 lists without a
            test. [default: 0.05; 1 with `background`]
        background: Leave out phrases that occur more than 3 times per million words in this corpus
            of other texts (a folder, or its address); repeat it for several.
        top: Show the first N phrases of each group.
        out: Write the phrases here, one per line (.jsonl), for `fabula report --phrases`.
        seed: Seed of all random draws; the same seed gives the same bytes.
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def detect_score(
    texts: Texts,
    *,
    model: str = 'local',
    out: str | Path | None = None,
    share: str | None = None,
    restart: bool = False,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> Probabilities:
    r"""Score TEXTS by how probable a language model finds them.

    Computes mean log-likelihood, mean log-rank, and the curvature of Fast-DetectGPT, the baselines
    for the Creativity Index as a detector. Needs the extra [local].

    Raises `InputError`, `ModelError`.

    Parameters:
        texts: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        model: local (the embedded model) or a .gguf file.
        out: Write one row per text here (.jsonl); interrupted runs resume.
        share: Do only the I-th of N shares, as in 3/8, on any machine; when all are done, the same
            command without this option joins them.
        restart: Start over, ignoring what is there.
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def detect_calibrate(
    scores: Any,
    label: str,
    *,
    cluster: str | None = None,
    fpr: str | Sequence[float] = '0.01,0.05,0.1',
    out: str | Path | None = None,
    plot: str | Path | None = None,
    seed: int = 0,
) -> Detector:
    r"""Measure how well SCORES of labelled texts distinguish human from machine.

    Shows the AUROC with its 95 % interval (over clusters), thresholds for chosen
    false-positive rates with upper bounds on the true rates, and the expected calibration error. If
    the interval includes 0.5, the score cannot distinguish them, and gives no verdicts.
    Near-duplicate texts, and layout that alone tells people from machines, are reported.

    Raises `InputError` if a row lacks a field, `MixError` if rows were measured in different ways.

    Parameters:
        scores: a path, a result, a frame, rows, or several of them
        label: Which texts are human: those whose field has the value, as in label=human.
        cluster: Count texts that share this field (a prompt, an author) as one; near-duplicates
            always count as one. [default: prompt_id, pair_id or author, whichever exists]
        fpr: Shares of human texts that may be called machine-written; a threshold is set for each.
        out: Write the detectors here, for `detect apply`.
        plot: Draw the ROC curves here (.svg, .pdf or .png).
        seed: Seed of all random draws; the same seed gives the same bytes.
    """

def detect_apply(
    detector: Any,
    scores: Any,
    *,
    fpr: float = 0.01,
    out: str | Path | None = None,
) -> DetectorVerdicts:
    r"""Apply a DETECTOR that `detect calibrate` wrote to SCORES of other texts.

    A text is either flagged or not flagged; "not flagged" does not mean human. The detector gives a
    reason instead of a verdict if it cannot tell human from machine, if many more human texts than
    `fpr` may be flagged, or if the text differs in kind (length, layout, quotation marks,
    vocabulary) from the human texts that it was calibrated on.

    Raises `InputError`, and `MixError` for scores that were measured in another way.

    Parameters:
        detector: a path or a result
        scores: a path, a result, a frame, rows, or several of them
        fpr: Share of human texts that may be called machine-written.
        out: Write the verdicts here (.jsonl).
    """

def judge(
    stories: Texts,
    *,
    rubric: str = 'ttcw',
    items: str | None = None,
    template: str | Path | None = None,
    style: Literal['reason-first', 'verdict-first'] = 'reason-first',
    samples: int = 1,
    paraphrases: int = 0,
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int = 0,
    max_unreadable: int = 10,
    model: AskFunction | FunctionModel | str | Sequence[str] = ...,
    parallel: int | None = None,
    max_retries: int = 5,
    timeout: int | None = None,
    reasoning_effort: Literal['low', 'medium', 'high'] | None = None,
    cache: bool = False,
    batch: bool = False,
    structured: bool | None = None,
    price: str | None = None,
    max_cost: float | None = None,
    out: str | Path | None = None,
    restart: bool = False,
    again: str | None = None,
    labels: Any | None = None,
    shots: int = 0,
    retest: int = 0,
    pairwise: bool = False,
    by: str | None = None,
    max_pairs: int | None = None,
    rank_by: str | None = None,
    html: str | Path | None = None,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> Judged:
    r"""Have language models answer a rubric, story by story.

    An answer without a verdict (a refusal, a truncated or withheld answer, "yes and no") is
    missing, with its reason, and never counts as No. The judge's measured agreement with experts is
    shown beside each verdict.

    Raises `InputError`, `ModelError`, `BusyError`; finished answers are kept in `out`.

    Parameters:
        stories: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        rubric: A built-in rubric (see `fabula rubric show`), or a .toml file.
        items: Ask only these items of the rubric, separated by commas.
        template: Prompt with [STORY], [BACKGROUND], [QUESTION] and optionally [INSTRUCTION], in any
            order, to replace the built-in one, such as the authors' with_background.txt.
        style: Ask for reasons before the verdict, or after it (faster and cheaper).
        samples: Ask N times; the value is the share of Yes, or the most frequent choice.
        paraphrases: Ask each question in N other wordings too, taken from the rubric, and show how
            far verdicts depend on the wording.
        temperature: Sampling temperature. [default: 0 for one sample, 1 for more]
        max_tokens: Maximum length of what is written, in tokens. [default: 1024; 200 for verdict-
            first]
        seed: Seed for the order of items, sampling and intervals.
        max_unreadable: Stop after N consecutive answers without a readable verdict (0: never).
        model: local (the embedded model), a .gguf file, the URL of a server with OpenAI's protocol
            (URL#name, or URL,URL#name for several servers of one model), or provider/model as in
            Inspect AI: openai/..., anthropic/..., google/..., vllm/..., ollama/...; repeat it to
            ask several.
        parallel: Concurrent calls, for each copy or server. [default: 1 local, 10 elsewhere]
        max_retries: Retries of a failed call (hosted models).
        timeout: Timeout of one attempt at a call (hosted models). [default: the timeout of the
            provider's client]
        reasoning_effort: How long reasoning models think (hosted models); `max_tokens` includes the
            thinking. [default: the model's own]
        cache: Use Inspect's cache (hosted models).
        batch: Use the provider's batch mode: cheaper, slower.
        structured: Constrain hosted models to a JSON schema. [default: models known to follow one]
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
        out: Folder of the run: keeps every answer; interrupted runs resume.
        restart: Start over, ignoring what is there.
        again: Ask once more only where `out` has no verdict for one of these reasons, such as
            truncated,no_answer; with truncated, `max_tokens` may be raised.
        labels: People's labels for some of the stories, drawn at random: shows an estimate of what
            people would have said about all stories beside what the judge says (`fabula judge
            correct` shows more).
        shots: Show N labelled stories with their answers before each story (few-shot); needs
            `labels`.
        retest: Judge N stories a second time under another id, to see how often verdicts flip.
        pairwise: Ask which of two stories passes more convincingly, in both orders; not with
            `html`, `retest`, `samples` or `template`.
        by: Pair only stories that share this field (pairwise).
        max_pairs: Ask only N pairs, drawn at random so that all stories are connected (pairwise).
            [default: all pairs]
        rank_by: Also rank the groups of this field, such as models (pairwise, with `by`). [default:
            author]
        html: Write an HTML page of the results here.
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def judge_calibrate(
    stories: Texts,
    *,
    rubric: str = 'ttcw',
    items: str | None = None,
    template: str | Path | None = None,
    style: Literal['reason-first', 'verdict-first'] = 'reason-first',
    samples: int = 1,
    paraphrases: int = 0,
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int = 0,
    max_unreadable: int = 10,
    model: str | Sequence[str] = ...,
    parallel: int | None = None,
    max_retries: int = 5,
    timeout: int | None = None,
    reasoning_effort: Literal['low', 'medium', 'high'] | None = None,
    cache: bool = False,
    batch: bool = False,
    structured: bool | None = None,
    price: str | None = None,
    max_cost: float | None = None,
    out: str | Path | None = None,
    restart: bool = False,
    again: str | None = None,
    labels: Any | None = None,
    shots: int = 0,
    html: str | Path | None = None,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> Calibration:
    r"""Measure how far a judge agrees with people on stories that people have judged.

    STORIES with `labels`, for any rubric; or DIR, the folder Art_or_Artifice of
    github.com/salesforce/creativity_eval, which holds the texts of 36 of the 48 stories of TTCW and
    their experts' verdicts. The judge is compared with people on the same stories. Its agreement is
    saved by model, wording, style and mode, and shown with every later verdict of that judge.

    Raises `InputError`, before anything is paid for, if no labels match the stories.

    Parameters:
        stories: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        rubric: A built-in rubric (see `fabula rubric show`), or a .toml file.
        items: Ask only these items of the rubric, separated by commas.
        template: Prompt with [STORY], [BACKGROUND], [QUESTION] and optionally [INSTRUCTION], in any
            order, to replace the built-in one, such as the authors' with_background.txt.
        style: Ask for reasons before the verdict, or after it (faster and cheaper).
        samples: Ask N times; the value is the share of Yes, or the most frequent choice.
        paraphrases: Ask each question in N other wordings too, taken from the rubric, and show how
            far verdicts depend on the wording.
        temperature: Sampling temperature. [default: 0 for one sample, 1 for more]
        max_tokens: Maximum length of what is written, in tokens. [default: 1024; 200 for verdict-
            first]
        seed: Seed for the order of items, sampling and intervals.
        max_unreadable: Stop after N consecutive answers without a readable verdict (0: never).
        model: local (the embedded model), a .gguf file, the URL of a server with OpenAI's protocol
            (URL#name, or URL,URL#name for several servers of one model), or provider/model as in
            Inspect AI: openai/..., anthropic/..., google/..., vllm/..., ollama/...; repeat it to
            ask several.
        parallel: Concurrent calls, for each copy or server. [default: 1 local, 10 elsewhere]
        max_retries: Retries of a failed call (hosted models).
        timeout: Timeout of one attempt at a call (hosted models). [default: the timeout of the
            provider's client]
        reasoning_effort: How long reasoning models think (hosted models); `max_tokens` includes the
            thinking. [default: the model's own]
        cache: Use Inspect's cache (hosted models).
        batch: Use the provider's batch mode: cheaper, slower.
        structured: Constrain hosted models to a JSON schema. [default: models known to follow one]
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
        out: Folder of the run: keeps every answer; interrupted runs resume.
        restart: Start over, ignoring what is there.
        again: Ask once more only where `out` has no verdict for one of these reasons, such as
            truncated,no_answer; with truncated, `max_tokens` may be raised.
        labels: People's labels for the stories: a table of document, item, rater, value, or a
            study's export. [default: those in the released folder]
        shots: Show N labelled stories with their answers before each story (few-shot); needs
            `labels`.
        html: Write a page here: each verdict and reason beside those of people.
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def judge_correct(
    run: Any,
    *,
    labels: Any | None = None,
    by: str | None = None,
    texts: Any | None = None,
    judge: str | None = None,
    truth: Literal['mean', 'majority'] = 'mean',
    about: Literal['texts', 'source'] = 'texts',
    cluster: str | None = None,
    width: float = 0.1,
    next: int = 5,
    seed: int = 0,
) -> CorrectedRun:
    r"""Estimate what experts would have said about all documents of RUN, from labels for some.

    A judge that passes more documents than experts do is just as wrong on documents that nobody
    labelled. Means, rates of items and differences between groups are corrected by
    prediction-powered inference (PPI++), with 95 % intervals that are valid for few labels. The
    labelled documents must be drawn at random; labels for a different kind of document are refused.

    Raises `InputError`, `SettingsError`.

    Parameters:
        run: a folder or a result of `judge`
        labels: People's labels for some of the documents, drawn at random: a table of document,
            item, rater, value, a study's export, or TTCW's.
        by: Correct each group separately, and compare groups, by this field of the texts.
        texts: The texts that were judged, needed for fields other than author.
        judge: Judge to use, if the run has several.
        truth: How the answers of several experts on a document are combined (majority: for yes-no
            items).
        about: What the intervals are about: the texts that were judged, or the source that they are
            a sample of (all that a model or an author would write), which is wider.
        cluster: Count texts that share this field (a prompt, an author) as one, above all if labels
            were drawn by it.
        width: Estimate how many labels would make the interval this wide, as a share of the scale.
        next: Number of documents to suggest for labelling next.
        seed: Seed for the choice of documents to label next.
    """

def judge_agreement(
    runs: Any | None = None,
    *,
    price: str | None = None,
    labels: Any | None = None,
    by: Literal['item', 'dimension', 'author'] = 'item',
    stories: Any | None = None,
    seed: int = 0,
) -> Agreements:
    r"""Compare the judges of RUNs with people's verdicts and with each other.

    A RUN is a folder that `fabula judge` wrote. On yes-no items, with three or more judges, the
    majority of the judges is measured too; numbers and choices are compared item by item, with the
    statistic of their scale. Intervals are over documents.

    With `labels`, agreement with experts, and of experts with each other, follows for each item,
    dimension or author (`by`); without RUNs that of experts alone. Over several items, kappa has
    the chance of each item. Kappas have 95 % intervals over stories; an undefined coefficient
    (everybody answered the same) is shown as `-`, never as 0. On items that are not yes-no, kappa
    is weighted (numbers, ordered choices) and shown beside that of people on the same documents.

    Raises `InputError`, `SettingsError`, and `MixError` for runs of different items.

    Parameters:
        runs: a folder or a result of `judge`
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        labels: People's labels to measure the judges against: a table of document, item, rater,
            value, a study's export, or TTCW's; without them, judges are only compared with each
            other.
        by: What each row of agreement with `labels` stands for.
        stories: The texts that were judged; needed to measure length bias.
        seed: Seed for the intervals.
    """

def judge_themes(
    sources: str | Path | Sequence[str | Path],
    *,
    out: str | Path | None = None,
    themes: int = 4,
    model: str | Sequence[str] = (),
    parallel: int | None = None,
    max_retries: int = 5,
    timeout: int | None = None,
    reasoning_effort: Literal['low', 'medium', 'high'] | None = None,
    cache: bool = False,
    batch: bool = False,
    structured: bool | None = None,
    price: str | None = None,
    max_cost: float | None = None,
) -> GroupedReasons:
    r"""Group the reasons that raters gave into themes, separately for passing and failing each test.

    A source is a run of `fabula judge`, or the experts' ttcw_annotations.json. Reasons are grouped
    by the meaning of their sentences; the most typical ones are shown beside each theme. With
    `model`, a model names the themes, which else have the words that are typical of them.

    Raises `InputError`, also if a label edited in `out` would be lost, and `ModelError`.

    Parameters:
        sources: str | Path | Sequence[str | Path]
        out: Write the themes here (.jsonl), to edit their labels; labels edited there are kept.
        themes: Number of themes for each item and side.
        model: local (the embedded model), a .gguf file, the URL of a server with OpenAI's protocol
            (URL#name, or URL,URL#name for several servers of one model), or provider/model as in
            Inspect AI: openai/..., anthropic/..., google/..., vllm/..., ollama/...; repeat it to
            ask several.
        parallel: Concurrent calls, for each copy or server. [default: 1 local, 10 elsewhere]
        max_retries: Retries of a failed call (hosted models).
        timeout: Timeout of one attempt at a call (hosted models). [default: the timeout of the
            provider's client]
        reasoning_effort: How long reasoning models think (hosted models); `max_tokens` includes the
            thinking. [default: the model's own]
        cache: Use Inspect's cache (hosted models).
        batch: Use the provider's batch mode: cheaper, slower.
        structured: Constrain hosted models to a JSON schema. [default: models known to follow one]
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
    """

def rubric_show(
    names: str | Sequence[str] | None = None,
    *,
    toml: bool = False,
    check: bool = False,
) -> Rubrics:
    r"""Show a rubric: its items by dimension, with the question of each; or list those built in.

    With `check`, checks rubric files. A rubric has id, version, title, and optionally citation,
    wording, unit (story, group, text); [aggregate] with rule (count, mean, none), counts (Yes, No),
    title; and [[items]], each with id, index, title, question, and optionally dimension,
    background, list_first (what to list before deciding), show_if (a condition such as
    first == 'Yes' and not second == 'No'), and scale: a table with kind (yes-no, choice, rank,
    number, text), options, low, high. Start from a built-in one, as `toml` prints it.

    Raises `InputError` with all errors of all files.

    Parameters:
        names: str | Sequence[str] | None
        toml: Print the file itself, as a start for your own rubric.
        check: Check files, and say all errors in each.
    """

def rubric_make(
    source: str,
    out: str | Path,
    *,
    n_groups: int | None = None,
    paraphrases: int = 0,
    model: str | Sequence[str] = ...,
    parallel: int | None = None,
    max_retries: int = 5,
    timeout: int | None = None,
    reasoning_effort: Literal['low', 'medium', 'high'] | None = None,
    cache: bool = False,
    batch: bool = False,
    structured: bool | None = None,
    price: str | None = None,
    max_cost: float | None = None,
) -> WrittenRubric:
    r"""Make a rubric: from experts' measures, from a published wording, or from a bare rubric.

    SOURCE is one of three. MEASURES.csv has the column measure, and optionally dimension and
    participant: as in the formative study of "Art or Artifice?" (section 4.1), measures are grouped
    by meaning within their dimension, and the fullest measure of each group becomes a yes/no
    question, worded by a model (`none` drafts without one).

    The authors' ttcw_all_tests.json gives the tests of creative writing in their published wording,
    with the ids of ttcw but a different digest, so that verdicts on the two wordings can be
    compared but are never mixed.

    A rubric, by name or file, is written out by a model for experts to verify: a question alone is
    ambiguous, so each item gets a background, what to list before deciding, and with
    `paraphrases` other wordings (section 5.2.1 there). What an item has is not changed.

    Raises `InputError`, also if another file would be overwritten, and `ModelError`.

    Parameters:
        source: str
        out: Write the rubric here, a .toml file to edit or verify.
        n_groups: Measures: number of groups in each dimension. [default: depends on their
            distances]
        paraphrases: A rubric: also write N other wordings of each question, for `fabula judge`.
        model: local (the embedded model), a .gguf file, the URL of a server with OpenAI's protocol
            (URL#name, or URL,URL#name for several servers of one model), or provider/model as in
            Inspect AI: openai/..., anthropic/..., google/..., vllm/..., ollama/...; repeat it to
            ask several.
        parallel: Concurrent calls, for each copy or server. [default: 1 local, 10 elsewhere]
        max_retries: Retries of a failed call (hosted models).
        timeout: Timeout of one attempt at a call (hosted models). [default: the timeout of the
            provider's client]
        reasoning_effort: How long reasoning models think (hosted models); `max_tokens` includes the
            thinking. [default: the model's own]
        cache: Use Inspect's cache (hosted models).
        batch: Use the provider's batch mode: cheaper, slower.
        structured: Constrain hosted models to a JSON schema. [default: models known to follow one]
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
    """

def study_new(
    file: str | Path,
    design: Literal['ttcw', 'feedback', 'pairs', 'best-worst'],
    documents: str | Path,
    *,
    group_field: str | None = None,
) -> DesignedStudy:
    r"""Write STUDY.toml, ready to run and for you to edit.

    Shows how many people the study needs, and what it cannot hide from them.

    Raises `InputError`.

    Parameters:
        file: str | Path
        design: ttcw: groups of stories by a rubric, as in `Art or Artifice?`; feedback: writing
            feedback, as in `Help Me Write a Story`; pairs: two stories of a group, side by side;
            best-worst: four of them, of which the best and the worst are named.
        documents: Stories (ttcw, pairs, best-worst), or what `feedback elicit` wrote (feedback).
        group_field: Field that groups the stories (ttcw, pairs, best-worst). [default: group, or
            prompt_id as `stories write` has it]
    """

def study_invite(
    file: str | Path,
    n: int | None = None,
    *,
    url: str | None = None,
    notes: str | Path | None = None,
    csv: str | Path | None = None,
    database: str | None = None,
) -> Invited:
    r"""Print N invitations: a number, a link and a note for each person.

    Links are not kept and cannot be shown again; `study people --reissue` makes a new one.

    Raises `InputError`.

    Parameters:
        file: str | Path
        n: int | None
        url: Address at which others reach the page. [default: http://127.0.0.1:8000, for this
            machine only]
        notes: File with one note per line: makes one invitation for each, in place of N.
        csv: Also write numbers, notes and links here.
        database: sqlite:///FILE or postgresql://... [default: a file beside STUDY.toml]
    """

def study_people(
    file: str | Path,
    participants: str | Sequence[str] | None = None,
    *,
    url: str | None = None,
    reissue: bool = False,
    remove: bool = False,
    forget: bool = False,
    status: str | None = None,
    database: str | None = None,
) -> PeopleDone:
    r"""Look after the participants of a study; each PARTICIPANT is a name such as p0007.

    A new link is shown once and not kept.

    Raises `InputError`.

    Parameters:
        file: str | Path
        participants: str | Sequence[str] | None
        url: Address at which others reach the page. [default: http://127.0.0.1:8000, for this
            machine only]
        reissue: Print a new link for each PARTICIPANT; the old link stops working.
        remove: Leave out the answers of each PARTICIPANT, and give their places to others. This
            cannot be undone; the answers stay in the database.
        forget: Delete all answers of each PARTICIPANT permanently.
        status: With `remove`: everybody whose submission has this status on the platform: RETURNED,
            TIMED-OUT, REJECTED, ...
        database: sqlite:///FILE or postgresql://... [default: a file beside STUDY.toml]
    """

def study_serve(
    file: str | Path,
    *,
    preview: bool = False,
    host: str = '127.0.0.1',
    port: int | None = None,
    behind_proxy: str | None = None,
    root_path: str = '',
    insecure: bool = False,
    database: str | None = None,
) -> Result:
    r"""Serve the study's page. Organisers log in at /organise.

    Their password is read from the environment variable FABULA_STUDY_PASSWORD; without it, one is
    generated and printed. With FABULA_PROLIFIC_TOKEN, and the study's ids as `studies` under
    [entry], the statuses of Prolific's submissions are fetched every minute.

    With `preview`, the page is served on this machine only, with a link for yourself. Answers go
    into a separate database, which is deleted at the end: they are never counted and take nobody's
    place, and you can still change the study. The title says that it is a preview. The organiser's
    page has further links.

    Raises `InputError`; else it returns when the process is stopped.

    Parameters:
        file: str | Path
        preview: Try the study out on this machine, with a link for yourself: nothing is kept.
        host: Address to listen on.
        port: Port to listen on. [default: 8000; a free one for a preview]
        behind_proxy: Trust the forwarded headers of a proxy at this address (for https).
        root_path: Path at which the proxy mounts the study.
        insecure: Serve other machines without https: anybody on the network path can read the
            answers.
        database: sqlite:///FILE or postgresql://... [default: a file beside STUDY.toml]
    """

def study_export(
    file: str | Path,
    out: str | Path,
    *,
    unfinished: bool = False,
    wide: bool = False,
    people: str | Path | None = None,
    times: str | Path | None = None,
    database: str | None = None,
) -> Exported:
    r"""Write all valid answers as measurements, one per row, each with the time it was saved (UTC).

    Commands that read measurements (`judge agreement --labels`, `feedback score --people`) expect
    this format.

    Raises `InputError`.

    Parameters:
        file: str | Path
        out: Write the measurements here (.jsonl, .csv, .xlsx or .parquet).
        unfinished: Include answers that were not handed in.
        wide: Write a row for each person and text, with a column for each item.
        people: Write a table of participants here.
        times: Write the time each person took over each page here.
        database: sqlite:///FILE or postgresql://... [default: a file beside STUDY.toml]
    """

def study_backup(
    file: str | Path,
    backup_file: str | Path,
    *,
    restore: bool = False,
    database: str | None = None,
) -> Copied:
    r"""Copy all current answers into FILE and compare the copy with the original, or restore them.

    The study may be running. FILE is an SQLite file, even if the database is PostgreSQL. Keep
    STUDY.toml and the documents with it.

    With `restore`, FILE can also be a copy of the study's own file, with or without its log
    (FILE-wal) beside it.

    Raises `InputError`.

    Parameters:
        file: str | Path
        backup_file: str | Path
        restore: Put the answers in FILE into an empty database.
        database: sqlite:///FILE or postgresql://... [default: a file beside STUDY.toml]
    """

def study_analyse(
    file: str | Path,
    *,
    plot: str | Path | None = None,
    seed: int = 0,
    database: str | None = None,
) -> StudyAnalysis:
    r"""Print the paper's tables from the answers: pass rates, agreement, ranks and origins (ttcw);
    means with standard errors, agreement between raters (feedback); rankings by the Bradley-Terry
    model, as in `judge --pairwise` (pairs).

    Raises `InputError`, also if nobody has handed in anything yet.

    Parameters:
        file: str | Path
        plot: Draw tests passed, ranks and supposed origins here (ttcw; .svg, .pdf or .png).
        seed: Seed of all random draws; the same seed gives the same bytes.
        database: sqlite:///FILE or postgresql://... [default: a file beside STUDY.toml]
    """

def plan(
    labels: Any,
    *,
    rubric: str = 'ttcw',
    stories: str | Sequence[float] = '10,15,20,30,40,50,75,100,150,200,300,400,500',
    raters: str | Sequence[float] | None = None,
    documents: str | Path | None = None,
    authors: str | None = None,
    mean_width: float = 0.1,
    kappa_width: float = 0.2,
    power: float = 0.8,
    per_person: int | None = None,
    seed: int = 0,
) -> Plan:
    r"""Resample a pilot to see how narrow intervals get, and how often a difference is found.

    LABELS are people's verdicts on yes-no items or numbers, on at least ten stories: a table with
    document, item, rater and value (.csv, .jsonl, .xlsx, .parquet), and author if two groups of
    stories are compared; what `fabula study export` writes; or the authors' ttcw_annotations.json.

    Raises `InputError`, also if the pilot is too small or too uniform to plan from.

    Parameters:
        labels: a path, a frame or rows
        rubric: Rubric that the pilot answered: a built-in one, or a .toml file.
        stories: Numbers of stories to try, of each group if there are two.
        raters: Numbers of raters per story to try. [default: one up to those of the pilot]
        documents: The pilot's stories, whose authors count where labels name none (what `study
            export` writes names none).
        authors: The two authors whose stories are compared. [default: those of the pilot, if they
            are two with ten stories each]
        mean_width: Target width of the 95 % interval of the share of Yes, or of a mean of numbers
            as a share of their range.
        kappa_width: Target width of the 95 % interval of Fleiss's kappa or, for numbers, of kappa
            with quadratic weights.
        power: Target share of studies that find the groups' difference.
        per_person: Number of stories that one person reads, to show the number of people.
        seed: Seed of all random draws; the same seed gives the same bytes.
    """

def stories_draw(
    sources: Texts,
    out: str | Path,
    *,
    each: int | None = None,
    pieces: int | None = None,
    by: str | None = None,
    seed: int = 0,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> Drawn:
    r"""Draw texts of SOURCES at random, the same number of each group.

    For commands that keep all texts in memory, as `diversity` and `report` do, or pay for each, as
    `judge` does: SOURCES may have millions of texts, of which only the drawn ones are kept. With
    the same seed, the same texts are drawn whatever their order.

    With `pieces`, SOURCES are files that `feedback elicit` wrote, and pieces of feedback are drawn
    for people to rate, evenly from cells and stories; a cell is a model, a corruption, a prompt and
    a number of examples. Withheld feedback and models' refusals are left out. If a cell has too few
    pieces, all are used, and the other cells supply more. Source: Rashkin et al. 2025, section 6.

    Raises `InputError`, `SettingsError`.

    Parameters:
        sources: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        each: Draw N texts of each group, or all of a group that has fewer.
        pieces: Draw N pieces of feedback in all (1,920 in the paper), equally many of each cell.
        by: Field to group the texts by, such as author or model; of feedback, fields whose values
            together make a cell. [default: all texts are one group; of feedback,
            model,method,prompt,shots]
        out: Write what was drawn here (.jsonl); feedback is for `study new`.
        seed: Seed of all random draws; the same seed gives the same bytes.
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def stories_plot(
    sources: Texts,
    out: str | Path,
    *,
    seed: int = 0,
    share: str | None = None,
    restart: bool = False,
    model: str | Sequence[str] = ...,
    parallel: int | None = None,
    max_retries: int = 5,
    timeout: int | None = None,
    reasoning_effort: Literal['low', 'medium', 'high'] | None = None,
    cache: bool = False,
    batch: bool = False,
    structured: bool | None = None,
    price: str | None = None,
    max_cost: float | None = None,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> WrittenStories:
    r"""Summarise the plot of each story of SOURCES in a sentence.

    Read the plots, correct those that are wrong, and set `verified` to true before stories are
    written from them.

    Raises `InputError`, `ModelError`, `BusyError`; finished plots are kept in `out`.

    Parameters:
        sources: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        out: Write a row with the plot of each story here (.jsonl).
        seed: Seed for sampling.
        share: Do only the I-th of N shares, as in 3/8, on any machine; when all are done, the same
            command without this option joins them.
        restart: Start over, ignoring what is there.
        model: local (the embedded model), a .gguf file, the URL of a server with OpenAI's protocol
            (URL#name, or URL,URL#name for several servers of one model), or provider/model as in
            Inspect AI: openai/..., anthropic/..., google/..., vllm/..., ollama/...; repeat it to
            ask several.
        parallel: Concurrent calls, for each copy or server. [default: 1 local, 10 elsewhere]
        max_retries: Retries of a failed call (hosted models).
        timeout: Timeout of one attempt at a call (hosted models). [default: the timeout of the
            provider's client]
        reasoning_effort: How long reasoning models think (hosted models); `max_tokens` includes the
            thinking. [default: the model's own]
        cache: Use Inspect's cache (hosted models).
        batch: Use the provider's batch mode: cheaper, slower.
        structured: Constrain hosted models to a JSON schema. [default: models known to follow one]
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def stories_write(
    plots: str | Path,
    out: str | Path,
    *,
    human: str | Sequence[str] = (),
    words: int | None = None,
    attempts: int = 20,
    verified_only: bool = False,
    temperature: float = 1.0,
    seed: int = 0,
    share: str | None = None,
    restart: bool = False,
    model: str | Sequence[str] = ...,
    parallel: int | None = None,
    max_retries: int = 5,
    timeout: int | None = None,
    reasoning_effort: Literal['low', 'medium', 'high'] | None = None,
    cache: bool = False,
    batch: bool = False,
    structured: bool | None = None,
    price: str | None = None,
    max_cost: float | None = None,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> WrittenStories:
    r"""Have models write a story for each plot, close to a target length.

    PLOTS is a file from `fabula stories plot`, or any .jsonl with id, plot and n_words. A story is
    rewritten until it is within 200 words of its target length, or a fifth of it if that is less,
    up to `attempts` times; stories that never come close are reported and left out. All rounds are
    kept in FILE.rounds.jsonl.

    Raises `InputError`, `ModelError`, `BusyError`.

    Parameters:
        plots: str | Path
        out: Write the finished stories here (.jsonl); every round is kept beside it.
        human: Add the human story of each plot (same id) to its group.
        words: Target length of every story. [default: n_words of its row, the length of the human
            story]
        attempts: Rewrite a story up to N times.
        verified_only: Use only plots that a person has verified.
        temperature: Sampling temperature.
        seed: Seed for sampling.
        share: Do only the I-th of N shares, as in 3/8, on any machine; when all are done, the same
            command without this option joins them.
        restart: Start over, ignoring what is there.
        model: local (the embedded model), a .gguf file, the URL of a server with OpenAI's protocol
            (URL#name, or URL,URL#name for several servers of one model), or provider/model as in
            Inspect AI: openai/..., anthropic/..., google/..., vllm/..., ollama/...; repeat it to
            ask several.
        parallel: Concurrent calls, for each copy or server. [default: 1 local, 10 elsewhere]
        max_retries: Retries of a failed call (hosted models).
        timeout: Timeout of one attempt at a call (hosted models). [default: the timeout of the
            provider's client]
        reasoning_effort: How long reasoning models think (hosted models); `max_tokens` includes the
            thinking. [default: the model's own]
        cache: Use Inspect's cache (hosted models).
        batch: Use the provider's batch mode: cheaper, slower.
        structured: Constrain hosted models to a JSON schema. [default: models known to follow one]
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def stories_openings(
    beginnings: Texts,
    out: str | Path,
    *,
    kind: Literal['novel', 'poem', 'speech', 'news', 'proof', 'continuation'] = 'novel',
    prompt: str | Sequence[str] = ...,
    prompt_file: str | Path | None = None,
    sentences: int | None = None,
    top_p: float = 0.9,
    temperature: float = 1.0,
    max_tokens: int = 288,
    seed: int = 0,
    share: str | None = None,
    restart: bool = False,
    model: str | Sequence[str] = ...,
    parallel: int | None = None,
    max_retries: int = 5,
    timeout: int | None = None,
    reasoning_effort: Literal['low', 'medium', 'high'] | None = None,
    cache: bool = False,
    batch: bool = False,
    structured: bool | None = None,
    price: str | None = None,
    max_cost: float | None = None,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> WrittenStories:
    r"""Have models continue a first sentence, a headline or a theorem.

    BEGINNINGS are rows of a table, files with one beginning each, or a .txt file with one per line;
    with `sentences` they are people's whole texts, which then stand beside the models'.
    The defaults are those of the Creativity Index paper (appendix B.1): top-p 0.9, 288 tokens.

    Raises `InputError`, `ModelError`, `BusyError`; finished texts are kept in `out`.

    Parameters:
        beginnings: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        out: Write a row for each text here (.jsonl).
        kind: Kind of text to write.
        prompt: Prompt format: plain; ideas, perspectives, novelty, bold, free, agent, writer,
            direction, task, life, which ask for creativity; one of the prompt file; or all.
        prompt_file: Your own prompts (.toml), or the text of the paper (.txt, .md), whose appendix
            B.1 has the published ones.
        sentences: BEGINNINGS are whole texts by people: models get the first N sentences of each,
            and the text itself, up to the sentence that passes 256 words, becomes a row too.
        top_p: Nucleus sampling threshold (top-p).
        temperature: Sampling temperature.
        max_tokens: Maximum length of what is written, in tokens.
        seed: Seed for sampling.
        share: Do only the I-th of N shares, as in 3/8, on any machine; when all are done, the same
            command without this option joins them.
        restart: Start over, ignoring what is there.
        model: local (the embedded model), a .gguf file, the URL of a server with OpenAI's protocol
            (URL#name, or URL,URL#name for several servers of one model), or provider/model as in
            Inspect AI: openai/..., anthropic/..., google/..., vllm/..., ollama/...; repeat it to
            ask several.
        parallel: Concurrent calls, for each copy or server. [default: 1 local, 10 elsewhere]
        max_retries: Retries of a failed call (hosted models).
        timeout: Timeout of one attempt at a call (hosted models). [default: the timeout of the
            provider's client]
        reasoning_effort: How long reasoning models think (hosted models); `max_tokens` includes the
            thinking. [default: the model's own]
        cache: Use Inspect's cache (hosted models).
        batch: Use the provider's batch mode: cheaper, slower.
        structured: Constrain hosted models to a JSON schema. [default: models known to follow one]
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def continuation_passages(
    books: Texts,
    out: str | Path,
    *,
    sentences: int = 20,
    stride: int | None = None,
    limit: int | None = None,
    seed: int = 0,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> Passages:
    r"""Cut BOOKS into contexts and the sentences that follow them.

    BOOKS are any texts, or files of the Children's Book Test, whose tokens are turned back into
    text (as rows of tokenised sentences, with `text` sentences). No passage crosses a chapter
    boundary; headings are left out.

    Raises `InputError` if no chapter is long enough, or two books have the same name.

    Parameters:
        books: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        out: Write a row for each passage here (.jsonl): context and gold.
        sentences: Number of sentences in a context.
        stride: Number of sentences from the start of one passage to the next. [default: no overlap]
        limit: Sample N passages (see `seed`).
        seed: Seed of all random draws; the same seed gives the same bytes.
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def continuation_train(
    out: str | Path,
    texts: Texts | None = None,
    *,
    kind: Literal['random', 'unigram', 'case', 'recurrent'] | Sequence[Literal['random', 'unigram', 'case', 'recurrent']] = ...,
    min_count: int = 25,
    epochs: int = 3,
    seed: int = 0,
    restart: bool = False,
    jobs: int | None = None,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> Trained:
    r"""Train generators on the stories of TEXTS: random, unigram, case-based, recurrent.

    Without TEXTS, trains on the texts that `out` was made from. If training is interrupted, run the
    same command again to resume from the last checkpoint.

    Raises `InputError`, `ModelError`, `BusyError`.

    Parameters:
        texts: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        out: Folder for the trained generators. Those already trained on the same texts are kept.
        kind: Generators to train; repeat it for several.
        min_count: Minimum number of times a word must occur to be in the vocabulary.
        epochs: Number of passes of the recurrent network over all stories.
        seed: Seed of all random draws; the same seed gives the same bytes.
        restart: Start over, ignoring what is there.
        jobs: Number of processes to use; results do not depend on it. [default: all processors]
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def continuation_generate(
    contexts: str | Path,
    out: str | Path,
    *,
    from_: str | Path | None = None,
    kind: str | Sequence[str] = ...,
    temperature: float = 0.7,
    seed: int = 0,
    share: str | None = None,
    restart: bool = False,
    jobs: int | None = None,
    model: str | Sequence[str] = (),
    parallel: int | None = None,
    max_retries: int = 5,
    timeout: int | None = None,
    reasoning_effort: Literal['low', 'medium', 'high'] | None = None,
    cache: bool = False,
    batch: bool = False,
    structured: bool | None = None,
    price: str | None = None,
    max_cost: float | None = None,
) -> Continuations:
    r"""Have generators and language models write the next sentence of each passage.

    Interrupted runs resume; a model whose call failed is asked again.

    Raises `InputError`, `ModelError`, `BusyError`.

    Parameters:
        contexts: Passages to continue, as `continuation passages` writes them (.jsonl).
        out: Write a row for each continuation here (.jsonl).
        from_: Folder that `continuation train` wrote.
        kind: Generator to use, repeat it for several: random, unigram, case, recurrent from that
            folder; as-long needs none: it is a control, a sentence of the same book with as many
            words as the book's own.
        temperature: Sampling temperature.
        seed: Seed of all random draws; the same seed gives the same bytes.
        share: Do only the I-th of N shares, as in 3/8, on any machine; when all are done, the same
            command without this option joins them.
        restart: Start over, ignoring what is there.
        jobs: Number of processes to use; results do not depend on it. [default: all processors]
        model: local (the embedded model), a .gguf file, the URL of a server with OpenAI's protocol
            (URL#name, or URL,URL#name for several servers of one model), or provider/model as in
            Inspect AI: openai/..., anthropic/..., google/..., vllm/..., ollama/...; repeat it to
            ask several.
        parallel: Concurrent calls, for each copy or server. [default: 1 local, 10 elsewhere]
        max_retries: Retries of a failed call (hosted models).
        timeout: Timeout of one attempt at a call (hosted models). [default: the timeout of the
            provider's client]
        reasoning_effort: How long reasoning models think (hosted models); `max_tokens` includes the
            thinking. [default: the model's own]
        cache: Use Inspect's cache (hosted models).
        batch: Use the provider's batch mode: cheaper, slower.
        structured: Constrain hosted models to a JSON schema. [default: models known to follow one]
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
    """

def continuation_score(
    systems: str | Path | Sequence[str | Path],
    contexts: str | Path,
    *,
    out: str | Path | None = None,
    vocabulary: str | Path | None = None,
    test: Literal['paired', 'two-sample'] = 'paired',
    permutations: int = 10000,
    seed: int = 0,
    html: str | Path | None = None,
    restart: bool = False,
    grammar: str = 'harper',
    encoder: str | Path | None = None,
    jobs: int | None = None,
    engine: Literal['local', 'ray'] = 'local',
    address: str | None = None,
) -> ComparedSystems:
    r"""Compare SYSTEMS that continue the same stories on fifteen metrics, with tests.

    A row of SYSTEMS contains the `id` of a passage, the `system` and its `text`; null means that
    the system returned none. Source: Roemmele, Gordon and Swanson 2017.

    Raises `InputError` with the line.

    Parameters:
        systems: str | Path | Sequence[str | Path]
        contexts: Passages that were continued, as `continuation passages` writes them (.jsonl).
        out: Write the metrics of each continuation here (.jsonl); interrupted runs resume.
        vocabulary: Count only these words in the two ratios: one word per line, or
            DIR/vocabulary.tsv from `continuation train`.
        test: Compare systems passage by passage and book by book, or as independent samples, as the
            paper does.
        permutations: Number of permutations in each test.
        seed: Seed of all random draws; the same seed gives the same bytes.
        html: Write a page with all results here.
        restart: Start over, ignoring what is there.
        grammar: harper, languagetool (its server, as languagetool@URL if not on port 8081), or
            none.
        encoder: Sentence encoder: a folder with model.onnx and tokenizer.json. [default: MiniLM,
            packaged]
        jobs: Number of processes to use; results do not depend on it. [default: all processors]
        engine: ray: on a Ray cluster, or on `jobs` processes of one started for this command.
        address: ray: the cluster, as `ray start` prints it; auto for one that runs on this machine.
            [env: RAY_ADDRESS]
    """

def feedback_corrupt(
    stories: Texts,
    out: str | Path,
    *,
    methods: str = 'original,backtranslate,swap,delete',
    translator: str | None = None,
    writer: str | None = None,
    rounds: int = 10,
    per_set: int | None = None,
    by: str = 'source',
    balanced: bool = False,
    share: str | None = None,
    restart: bool = False,
    seed: int = 0,
    price: str | None = None,
    max_cost: float | None = None,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> Corrupted:
    r"""Corrupt STORIES: swap two sentences, delete one, or translate it and back ten times.

    Each row contains the corrupted text, the original, and exactly what was changed, as character
    positions in both. Stories that cannot be corrupted are left out and reported. Source: Rashkin
    et al. 2025, section 4.

    Beyond the paper, and only if named in `methods`: a character's name changes midway (name), or
    the model of `writer` adds two sentences that contradict each other (fact), an object that is
    never mentioned again (thread), or a motive and later its opposite (motive).

    Raises `InputError`, `ModelError`, `BusyError`. Without any translator the other methods are
    applied.

    Parameters:
        stories: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        methods: Corruptions to apply to each story, separated by commas; beyond the paper, for
            longer stories: name, and with `writer` fact, thread, motive.
        out: Write the stories here (.jsonl); interrupted runs resume.
        translator: Translator to German and back: a language model as for `feedback elicit`, or
            marian[:THERE,BACK] (Helsinki-NLP's models, or folders). [default: marian if its models
            are on this machine]
        writer: Language model, as for `feedback elicit`, that writes the faults of fact, thread and
            motive; what it writes is checked, and inserted at recorded places only.
        rounds: Number of times a story is translated and back.
        per_set: Draw up to N stories from each set (`by`).
        by: Field that names the set a story belongs to.
        balanced: Keep only stories that every method can change, so that all methods use the same
            stories; with `per_set`, N such stories from each set.
        share: Do only the I-th of N shares, as in 3/8, on any machine; when all are done, the same
            command without this option joins them.
        restart: Start over, ignoring what is there.
        seed: Seed of all random draws; the same seed gives the same bytes.
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def feedback_elicit(
    corrupted: str | Path,
    out: str | Path,
    *,
    prompts: str = 'all',
    shots: str = '0,2',
    prompt_file: str | Path | None = None,
    temperature: float = 0.7,
    max_tokens: int = 512,
    share: str | None = None,
    restart: bool = False,
    seed: int = 0,
    model: str | Sequence[str] = ...,
    parallel: int | None = None,
    max_retries: int = 5,
    timeout: int | None = None,
    reasoning_effort: Literal['low', 'medium', 'high'] | None = None,
    cache: bool = False,
    batch: bool = False,
    structured: bool | None = None,
    price: str | None = None,
    max_cost: float | None = None,
) -> Elicited:
    r"""Ask models for feedback on the stories of CORRUPTED, which `feedback corrupt` wrote.

    Asks about every story with every prompt, with and without examples. Shows the number of calls
    and tokens before it starts, unless they are free. Source: Rashkin et al. 2025, section 4.

    Raises `InputError`, `ModelError`, `BusyError`.

    Parameters:
        corrupted: str | Path
        prompts: full (a list, with a taxonomy of issues), list, sentence, spot; or those in the
            prompt file.
        shots: Numbers of examples in the prompt.
        prompt_file: Your own prompts (.toml), or the text of the paper (.txt, .md), whose appendix
            B has the published ones.
        out: Write the feedback here (.jsonl); interrupted runs resume.
        temperature: Sampling temperature.
        max_tokens: Maximum length of what is written, in tokens.
        share: Do only the I-th of N shares, as in 3/8, on any machine; when all are done, the same
            command without this option joins them.
        restart: Start over, ignoring what is there.
        seed: Seed of all random draws; the same seed gives the same bytes.
        model: local (the embedded model), a .gguf file, the URL of a server with OpenAI's protocol
            (URL#name, or URL,URL#name for several servers of one model), or provider/model as in
            Inspect AI: openai/..., anthropic/..., google/..., vllm/..., ollama/...; repeat it to
            ask several.
        parallel: Concurrent calls, for each copy or server. [default: 1 local, 10 elsewhere]
        max_retries: Retries of a failed call (hosted models).
        timeout: Timeout of one attempt at a call (hosted models). [default: the timeout of the
            provider's client]
        reasoning_effort: How long reasoning models think (hosted models); `max_tokens` includes the
            thinking. [default: the model's own]
        cache: Use Inspect's cache (hosted models).
        batch: Use the provider's batch mode: cheaper, slower.
        structured: Constrain hosted models to a JSON schema. [default: models known to follow one]
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
    """

def feedback_find(
    answers: Any,
    *,
    by: str = 'model',
    details: str | Path | None = None,
    rubric: str = 'feedback_fault',
    style: Literal['reason-first', 'verdict-first'] = 'reason-first',
    samples: int = 1,
    paraphrases: int = 0,
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int = 0,
    max_unreadable: int = 10,
    model: AskFunction | FunctionModel | str | Sequence[str] = (),
    parallel: int | None = None,
    max_retries: int = 5,
    timeout: int | None = None,
    reasoning_effort: Literal['low', 'medium', 'high'] | None = None,
    cache: bool = False,
    batch: bool = False,
    structured: bool | None = None,
    price: str | None = None,
    max_cost: float | None = None,
    out: str | Path | None = None,
    restart: bool = False,
    labels: Any | None = None,
) -> FoundFaults:
    r"""Score which ANSWERS find the faults that `feedback corrupt` planted.

    Shows recall by kind of fault, false alarms on the original stories, precision and F1, with
    intervals over stories, and compares models on the stories that all of them answered. An answer
    finds a fault if it points at the recorded place; with `model` a judge reads it too. Refusals
    and unreadable answers are missing, and counted.

    Raises `InputError`, `ModelError`, `BusyError`.

    Parameters:
        answers: a path, a result, a frame, rows, or several of them
        by: Tables to print: dimensions, or crosses of them such as model*prompt.
        details: Write what was read from each answer here (.jsonl), to check or label.
        rubric: Rubric with the questions for judges; a .toml file with the same items may word them
            differently.
        style: Ask for reasons before the verdict, or after it (faster and cheaper).
        samples: Ask N times; the value is the share of Yes, or the most frequent choice.
        paraphrases: Ask each question in N other wordings too, taken from the rubric, and show how
            far verdicts depend on the wording.
        temperature: Sampling temperature. [default: 0 for one sample, 1 for more]
        max_tokens: Maximum length of what is written, in tokens. [default: 1024; 200 for verdict-
            first]
        seed: Seed for the order of items, sampling and intervals.
        max_unreadable: Stop after N consecutive answers without a readable verdict (0: never).
        model: local (the embedded model), a .gguf file, the URL of a server with OpenAI's protocol
            (URL#name, or URL,URL#name for several servers of one model), or provider/model as in
            Inspect AI: openai/..., anthropic/..., google/..., vllm/..., ollama/...; repeat it to
            ask several.
        parallel: Concurrent calls, for each copy or server. [default: 1 local, 10 elsewhere]
        max_retries: Retries of a failed call (hosted models).
        timeout: Timeout of one attempt at a call (hosted models). [default: the timeout of the
            provider's client]
        reasoning_effort: How long reasoning models think (hosted models); `max_tokens` includes the
            thinking. [default: the model's own]
        cache: Use Inspect's cache (hosted models).
        batch: Use the provider's batch mode: cheaper, slower.
        structured: Constrain hosted models to a JSON schema. [default: models known to follow one]
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
        out: Folder of the run: keeps every answer; interrupted runs resume. For judges (`model`).
        restart: Start over, ignoring what is there.
        labels: People's answers about some of the feedback (document, item, rater, value; items
            found and asks): measures how often quotations and judges are right. A document is an
            answer, named as in `details`.
    """

def feedback_score(
    answers: Any,
    *,
    by: str = 'model,prompt,shots,method',
    out: str | Path | None = None,
    bertscore: str | None = None,
    seed: int = 0,
    people: str | Path | Sequence[str | Path] = (),
) -> ScoredFeedback:
    r"""Measure the feedback of ANSWERS: length, repetition, precision of "perfect as-is".

    By model, prompt, examples and corruption, and every cross of them, with intervals over stories.
    Source: Rashkin et al. 2025, section 5, Tables 1 and 6 to 9, appendix E.

    Raises `InputError` if a row lacks a field.

    Parameters:
        answers: a path, a result, a frame, rows, or several of them
        by: Tables to print: dimensions, or crosses of them such as model*prompt; the JSON contains
            all.
        out: Write the measures for every subset and cross here (.json).
        bertscore: Also measure BERTScore with the story, by the packaged encoder or the one in a
            folder (model.onnx, tokenizer.json).
        seed: Seed of all random draws; the same seed gives the same bytes.
        people: People's answers about the same feedback (measurements, or the released
            human_ratings.jsonl): shows whether the measures agree with people.
    """

def feedback_rate(
    feedback: Any,
    *,
    rubric: str = 'feedback',
    style: Literal['reason-first', 'verdict-first'] = 'reason-first',
    samples: int = 1,
    paraphrases: int = 0,
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int = 0,
    max_unreadable: int = 10,
    model: str | Sequence[str] = ...,
    parallel: int | None = None,
    max_retries: int = 5,
    timeout: int | None = None,
    reasoning_effort: Literal['low', 'medium', 'high'] | None = None,
    cache: bool = False,
    batch: bool = False,
    structured: bool | None = None,
    price: str | None = None,
    max_cost: float | None = None,
    out: str | Path | None = None,
    restart: bool = False,
    people: str | Path | Sequence[str | Path] = (),
    labels: Any | None = None,
    plot: str | Path | None = None,
) -> AnsweredFeedback:
    r"""Have a model answer the seven questions of the human form about each piece of FEEDBACK.

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

    Parameters:
        feedback: a path, a result, a frame, rows, or several of them
        rubric: Rubric with the questions, feedback or feedback_category; a .toml file with the same
            items may word them differently.
        style: Ask for reasons before the verdict, or after it (faster and cheaper).
        samples: Ask N times; the value is the share of Yes, or the most frequent choice.
        paraphrases: Ask each question in N other wordings too, taken from the rubric, and show how
            far verdicts depend on the wording.
        temperature: Sampling temperature. [default: 0 for one sample, 1 for more]
        max_tokens: Maximum length of what is written, in tokens. [default: 1024; 200 for verdict-
            first]
        seed: Seed for the order of items, sampling and intervals.
        max_unreadable: Stop after N consecutive answers without a readable verdict (0: never).
        model: local (the embedded model), a .gguf file, the URL of a server with OpenAI's protocol
            (URL#name, or URL,URL#name for several servers of one model), or provider/model as in
            Inspect AI: openai/..., anthropic/..., google/..., vllm/..., ollama/...; repeat it to
            ask several.
        parallel: Concurrent calls, for each copy or server. [default: 1 local, 10 elsewhere]
        max_retries: Retries of a failed call (hosted models).
        timeout: Timeout of one attempt at a call (hosted models). [default: the timeout of the
            provider's client]
        reasoning_effort: How long reasoning models think (hosted models); `max_tokens` includes the
            thinking. [default: the model's own]
        cache: Use Inspect's cache (hosted models).
        batch: Use the provider's batch mode: cheaper, slower.
        structured: Constrain hosted models to a JSON schema. [default: models known to follow one]
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
        out: Folder of the run: keeps every answer; interrupted runs resume. [default: rated; of
            categories, labelled]
        restart: Start over, ignoring what is there.
        people: People's answers about the same feedback (measurements, or the released
            human_ratings.jsonl): shows how far the rater agrees with them.
        labels: People's labels (.jsonl: id, labels), to measure how often the model assigns the
            right category; an id is that of the feedback and its model, as in s1_swap_spot_0_MODEL.
        plot: Draw the categories' shares by corruption here (.svg, .pdf or .png).
    """

def reference_build(
    sources: Texts,
    out: str | Path,
    *,
    add: bool = False,
    case: Literal['fold', 'keep'] | None = None,
    punct: Literal['drop', 'keep'] | None = None,
    preset: Literal['paper'] | None = None,
    shard_tokens: int | None = None,
    memory: str | None = None,
    jobs: int | None = None,
    engine: Literal['local', 'ray'] = 'local',
    address: str | None = None,
    share: str | None = None,
    restart: bool = False,
    sample: str | None = None,
    seed: int = 0,
    author: str | None = None,
    written_by: str | Sequence[str] = (),
    parallel: int | None = None,
    max_retries: int = 5,
    timeout: int | None = None,
    reasoning_effort: Literal['low', 'medium', 'high'] | None = None,
    cache: bool = False,
    batch: bool = False,
    structured: bool | None = None,
    price: str | None = None,
    max_cost: float | None = None,
    temperature: float = 1.0,
    max_tokens: int = 2048,
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> BuiltCorpus:
    r"""Build a reference corpus from SOURCES: files, folders, patterns, URLs, or - for stdin.

    Reads .txt, .md, .docx, .epub, .odt, .rtf, .pdf, Scrivener projects, .jsonl, .csv, .tsv,
    .xlsx, .parquet and Common Crawl's .wet, the text formats also with .gz or .zst. Instead of
    texts, SOURCES may be a corpus by name, such as pg19, from which `sample` words are read;
    `fabula reference info` lists the names. To resume an interrupted build, run the same
    command again.

    With `written_by`, SOURCES are sentences, such as a .txt file with one per line, or rows of a
    table: models continue them, and the corpus is built of their texts. Use this for texts by
    models that are newer than any corpus: models trained on the same web write the same phrases (Lu
    et al. 2024, section "Evaluation"; 150,000 sentences there). Against such a reference
    `fabula originality` sums levels 5 to 7 by default. Interrupted runs resume.

    Raises `InputError`, `CorpusError`; `CallFailed` if a call failed, since a corpus of only some
    of the answers would be a different one: what was written is kept.

    Parameters:
        sources: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        out: Folder to build, or to add to.
        add: Add the texts to the corpus that is there, in new shards; existing ones do not change.
        case: fold: ignore case; keep: distinguish Word from word. [default: fold]
        punct: drop: n-grams contain words only; keep: punctuation marks count too. [default: drop]
        preset: paper: the published setting, with case and punctuation kept; `case` and `punct`
            override it.
        shard_tokens: Words per shard, which is sorted in memory. [default: 133000000]
        memory: Memory limit; a lower limit makes smaller shards. [default: 4GB]
        jobs: Number of processes to use; results do not depend on it. [default: all processors]
        engine: ray: on a Ray cluster, or on `jobs` processes of one started for this command.
        address: ray: the cluster, as `ray start` prints it; auto for one that runs on this machine.
            [env: RAY_ADDRESS]
        share: Do only the I-th of N shares, as in 3/8, on any machine; when all are done, the same
            command without this option joins them.
        restart: Start over, ignoring what is there.
        sample: Read about this many words of a corpus from the catalogue, in documents drawn at
            random: 100M, 1.5B, or all. With `written_by`, draw so many of the sentences.
        seed: Seed of the sample and of models; the same seed, the same bytes.
        author: Read only books by this author, as in 'Austen, Jane' (gutenberg-mirror).
        written_by: Have this model continue the sentences of SOURCES, and build the corpus of what
            it writes, which is kept beside it (DIR.jsonl); named as in `fabula judge --model`;
            repeat it to ask several.
        parallel: Concurrent calls, for each copy or server. [default: 1 local, 10 elsewhere]
        max_retries: Retries of a failed call (hosted models).
        timeout: Timeout of one attempt at a call (hosted models). [default: the timeout of the
            provider's client]
        reasoning_effort: How long reasoning models think (hosted models); `max_tokens` includes the
            thinking. [default: the model's own]
        cache: Use Inspect's cache (hosted models).
        batch: Use the provider's batch mode: cheaper, slower.
        structured: Constrain hosted models to a JSON schema. [default: models known to follow one]
        price: Dollars per million tokens, to estimate the cost; for several models
            MODEL=IN/OUT;MODEL=IN/OUT.
        max_cost: Stop before spending more than this; needs a price.
        temperature: Sampling temperature.
        max_tokens: Maximum length of what is written, in tokens.
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def reference_remove(
    directory: str | Path,
    ids: str | Sequence[str] | None = None,
    *,
    ids_file: str | Path | None = None,
) -> BuiltCorpus:
    r"""Remove documents from the corpus DIR by id; searches no longer find them.

    Raises `CorpusError` for an id that the corpus does not have.

    Parameters:
        directory: str | Path
        ids: str | Sequence[str] | None
        ids_file: File with one id per line.
    """

def reference_info(
    name: str | None = None,
    *,
    ids: bool = False,
    check: bool = False,
    groups: bool = False,
) -> ReferenceInfo:
    r"""List public corpora that a reference can be built from, and indexes that can be queried.

    With the NAME of one: its source, licence and age, what it costs in time and disk space, and
    what it can and cannot tell. `fabula reference build NAME --sample 100M` builds one; use an
    index with `--reference infinigram:NAME`.

    With the folder of a corpus as NAME: what it contains and how it was built. With a .jsonl file
    that `reference group` wrote: its groups, and those that ship with Fabula.

    Raises `InputError`, and `CorpusError` for a corpus that is damaged.

    Parameters:
        name: str | None
        ids: List the ids of a corpus's documents instead, one per line.
        check: Check every file of a corpus against its checksum, and that searches find its own
            text.
        groups: Show the reference groups that ship with Fabula: the median and the middle 80 %.
    """

def reference_measure(
    directory: str | Path,
    *,
    levels: str | Sequence[float] | None = None,
    match: Literal['verbatim', 'near'] = 'verbatim',
    jobs: int | None = None,
    documents: int = 200,
    words: int = 1000,
    exclude: Literal['none', 'auto'] = 'none',
    seed: int = 0,
    restart: bool = False,
) -> HeldOut:
    r"""Score documents of the corpus DIR against the rest of the corpus.

    The distribution is saved in DIR, and served with it. From then on
    `fabula originality` and `fabula report` show the share of the reference's own documents whose
    Creativity Index is below the text's. Interrupted runs resume.

    Raises `InputError` if there are too few documents, or too few have a score.

    Parameters:
        directory: str | Path
        levels: Values of L that the Creativity Index sums. [default: 5-12; 5-7 against texts by
            models]
        match: near: also find matches in other words.
        jobs: Number of processes to use; results do not depend on it. [default: all processors]
        documents: Score N documents from the corpus, drawn at random.
        words: Score a passage of up to N words from each, drawn at random; choose about the length
            of your texts.
        exclude: auto: also leave out documents that copy or quote the passage, as in a run with
            this option.
        seed: Seed of all random draws; the same seed gives the same bytes.
        restart: Start over, ignoring what is there.
    """

def reference_group(
    texts: Texts,
    name: str,
    kind: Literal['people', 'models', 'other'],
    out: str | Path,
    *,
    title: str | None = None,
    levels: str | Sequence[float] | None = None,
    match: Literal['verbatim', 'near'] = 'verbatim',
    jobs: int | None = None,
    reference: str | Path | Reference | Sequence[str | Path | Reference] = (),
    exclude: Literal['none', 'auto'] = 'none',
    exclude_same: str | None = None,
    fluency_model: str = 'local',
    grammar: str = 'harper',
    dictionary: str | Path | None = None,
    without: str | Sequence[str] = (),
    with_: str | Sequence[str] = (),
    format: str | None = None,
    id: str = 'id',
    text: str = 'text',
) -> MeasuredGroup:
    r"""Measure TEXTS as a group. Only the numbers are kept, not the texts.

    Give the file to `fabula report --groups`.

    Raises `InputError`, `CorpusError`.

    Parameters:
        texts: a frame, a list, a mapping from id to text, a dataset, a file or a folder
        name: A short name, such as my-students.
        kind: Who wrote the texts.
        out: Write the numbers here, one line per group (.jsonl); groups with other names in the
            file are kept.
        title: Title shown on the page. [default: the number of texts, and the name]
        levels: Values of L that the Creativity Index sums. [default: 5-12; 5-7 against texts by
            models]
        match: near: also find matches in other words.
        jobs: Number of processes to use; results do not depend on it. [default: all processors]
        reference: Corpus to measure originality against: its folder or s3:// address, http://... if
            it is served, or infinigram:NAME; repeat it to search several as one.
        exclude: auto: leave out documents of the reference that copy or quote the text.
        exclude_same: Leave out documents whose FIELD equals the text's, such as author or
            prompt_id; texts that share it are not compared with each other either.
        fluency_model: Model used for surprisal (with fluency): local (the embedded model) or a
            .gguf file.
        grammar: harper, languagetool (its server, as languagetool@URL if not on port 8081), or
            none.
        dictionary: Words that are never noted as spelling or as a name: a text file, a word a line.
        without: Leave an instrument out: originality, profile, book, or one that another package
            adds; repeat it for several.
        with_: Add an instrument that is off by default: fluency.
        format: Read every file as this format: txt, md, docx, epub, odt, rtf, pdf, scriv, jsonl,
            csv, tsv, xlsx, parquet, wet.
        id: Field of a row that contains its id.
        text: Field of a row that contains the text.
    """

def reference_serve(
    directories: str | Path | Sequence[str | Path],
    *,
    host: str = '127.0.0.1',
    port: int = 8100,
    token_file: str | Path | None = None,
) -> Result:
    r"""Serve the corpora in DIR... over HTTP, as one reference for a whole team.

    Every command accepts it as `--reference http://HOST:PORT`, and gives the same numbers as the
    corpora on disk. If documents are added to a corpus or removed, the change is served within
    seconds; runs that began before must be started again.

    Raises `InputError`, `CorpusError`; else it returns when the process is stopped.

    Parameters:
        directories: str | Path | Sequence[str | Path]
        host: Address to listen on.
        port: Port to listen on.
        token_file: Tokens that give access, one per line; FABULA_REFERENCE_TOKEN holds another.
            Without a token, only this machine has access.
    """

def replicate_ttcw(
    folder: str | Path,
    *,
    plot: str | Path | None = None,
) -> Replicated:
    r"""Tables 5 and 6 and Figure 3 of "Art or Artifice?" (Chakrabarty et al. 2024).

    DIR is the folder Art_or_Artifice of github.com/salesforce/creativity_eval.

    Raises `InputError`.

    Parameters:
        folder: str | Path
        plot: Draw Figure 3 here (.svg, .pdf or .png).
    """

def replicate_linguistic_metrics(
    out: str | Path,
    books: str | Sequence[str],
    train: str | Sequence[str],
    *,
    stride: int = 5,
    recurrent: bool = True,
    seed: int = 0,
    html: str | Path | None = None,
    jobs: int | None = None,
) -> Replicated:
    r"""Table 2 of "Evaluating Story Generation Systems Using Automated Linguistic Analyses".

    Roemmele, Gordon and Swanson 2017: random, case-based, unigram and recurrent generators and the
    books' own sentences on fifteen metrics.

    Raises `InputError`, `ModelError`.

    Parameters:
        out: Folder for generators, continuations and scores; interrupted runs resume.
        books: Texts to cut the passages from: cbt_test.txt of the Children's Book Test
            (thespermwhale.com/jaseweston/babi/CBTest.tgz), or others.
        train: Texts to train the generators on, such as the test's cbt_train.txt or novels.
        stride: Number of sentences from the start of one passage to the next.
        recurrent: Train the recurrent network (needs torch).
        seed: Seed of all random draws; the same seed gives the same bytes.
        html: Write a page with our version of the table here.
        jobs: Number of processes to use; results do not depend on it. [default: all processors]
    """

def replicate_creativity_index(
    out: str | Path,
    folder: str | Path | None = None,
    *,
    texts: str | Path | Sequence[str | Path] = (),
    reference: str | Path | Reference | Sequence[str | Path | Reference] = (),
    label: str = 'label=human',
    by: str = 'model',
    cluster: str | None = None,
    model: str = 'local',
    match: Literal['verbatim', 'near'] | Sequence[Literal['verbatim', 'near']] = ...,
    exclude: Literal['auto', 'none'] | None = None,
    aligned: str | Sequence[str] = (),
    seed: int = 0,
    jobs: int | None = None,
) -> Replicated:
    r"""Run the analyses of "AI as Humanity's Salieri" on your own texts and references.

    Lu et al. 2024, Figures 3a to 3j and 3n: the index of people and models, verbatim and near;
    L-uniqueness against L; models before and after alignment; the spread over documents; detection
    beside a language model's log-probabilities. DIR is a copy of the authors' repository
    (github.com/GXimingLu/creativity_index), whose outputs/ are read too.

    Raises `InputError`, `CorpusError`, `ModelError`.

    Parameters:
        folder: str | Path | None
        out: Folder for references, scores and figures; interrupted runs resume.
        texts: Texts by people and machines, one set per file. [default: the authors' texts]
        reference: Corpora to compare with, each separately. [default: the machine texts of other
            prompts]
        label: Which texts are by people.
        by: Field to group texts by.
        cluster: Count texts that share this field, and near-duplicates, as one; in the reference
            they are left out. [default: prompt_id, pair_id or author, whichever exists]
        model: Model whose log-probabilities are compared as detectors: local, a .gguf file, or none
            (needs the extra [local]).
        match: Kind of matches; repeat it for several. Near matches take long.
        exclude: Leave out documents of the reference that copy or quote a text. [default: auto for
            the authors' texts, else none]
        aligned: Groups of models before and after alignment, to compare at each L; repeat it for
            several.
        seed: Seed of all random draws; the same seed gives the same bytes.
        jobs: Number of processes to use; results do not depend on it. [default: all processors]
    """

def replicate_story_feedback(
    folder: str | Path | None = None,
    *,
    run: str | Path | Sequence[str | Path] = (),
    ratings: str | Path | Sequence[str | Path] = (),
    bertscore: str | None = None,
    tokens: Literal['words', 'authors'] = 'words',
    seed: int = 0,
) -> Replicated:
    r"""Tables 1 and 3 to 9 of "Help Me Write a Story" (Rashkin et al. 2025).

    DIR is the folder of the files released at github.com/google-deepmind/igen.

    Raises `InputError`, `ModelError`.

    Parameters:
        folder: str | Path | None
        run: Your own feedback, as `fabula feedback elicit` writes it, for the same tables.
        ratings: Finished runs of `fabula feedback rate` that rated the feedback of `run`: Tables 3
            to 5.
        bertscore: Also measure BERTScore (Table 6), by the packaged encoder or the one in a folder.
        tokens: What trigrams are made of: words, or what the authors' one public row suggests that
            they counted (Penn Treebank tokens without single punctuation marks).
        seed: Seed of all random draws; the same seed gives the same bytes.
    """

def rerun(
    result: str,
    *,
    keep: str | Path | None = None,
) -> Rerun:
    r"""Make RESULT again from the record beside it, and show the differences.

    RESULT is a file or folder that a command of Fabula wrote; RESULT.provenance.json says how. The
    new result goes into a temporary folder, so RESULT does not change. Models are asked again,
    which may cost money. The exit code is 1 if the results differ.

    A record may come from somebody else. Whatever it says, all that is written goes into that
    folder, commands that do more than make a result are refused, and files elsewhere and servers
    are named and asked about first (--yes agrees).

    Raises `InputError`, also from Python: it is a command that makes a result again.

    Parameters:
        result: str
        keep: Keep what was made again in this folder, which must not exist.
    """
