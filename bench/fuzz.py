"""Damaged and hostile input for every parser: each must end in a sentence, or in a result.

    python bench/fuzz.py [--seconds 60] [--only NAME] [--seed 0] [--keep FOLDER] [--atheris]

Every target takes bytes, as they come from outside. What it may raise is a `FabulaError`; anything
else, more than ten seconds, or a process that ends, is a defect. Inputs are the golden files of all
formats and small documents of every kind, changed at random: bytes, values within JSON, and members
within archives, which are packed again so that the change gets past the checksum. With --atheris,
and that package installed, coverage of Fabula's code decides which changes are kept; each target
then has a process of its own, and its time is the clock's. Defects are written to FOLDER; when
fixed they go to tests/golden/fuzz, where a test reads them.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import corpora
from fabula.core.errors import FabulaError

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
Run = Callable[[bytes], object]
SLOW_S = 10
_N_SMOKE = 3
"""Inputs of each target where `seconds` is 0: the same ones each time."""


class Slow(BaseException):
    """A target took too long; no `except Exception` of a parser stops it."""


ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1e308, 2**70, "", "\x00", "\ud800", "=1+1", [], {}, [[]], {"a": {}},
    math.inf, "../../etc/passwd", "9" * 400, [None], -0.5, "NaN",
)  # fmt: skip


def changed(data: bytes, rng: random.Random) -> bytes:
    """An input with one to three changes of the kinds that fit it."""
    for _ in range(rng.randint(1, 3)):
        kinds: list[Callable[[bytes, random.Random], bytes]] = [_bytes_changed]
        if data[:2] == b"PK":
            kinds = [_member_changed] * 9 + [_bytes_changed]
        elif data[:1] in (b"{", b"["):
            kinds = [_json_changed] * 3 + [_bytes_changed]
        data = rng.choice(kinds)(data, rng)
    return data


def _bytes_changed(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return rng.randbytes(rng.randint(1, 20))
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    b = min(b, a + rng.choice((1, 4, 40, 4000)))
    piece = rng.choice(
        (b"", rng.randbytes(rng.randint(1, 8)), data[a:b] * rng.randint(2, 30), b"\xff" * 4,
         b"(" * 300, b"[" * 3000, b"-1", b"99999999999999999999", b"\x00", b"\n\n", b"'\"",
         "\u2028\u202e".encode(), b"&#x0;", b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/x'>]>")
    )  # fmt: skip
    return (data[:a] + piece + data[b:])[: 1 << 20]


def _member_changed(data: bytes, rng: random.Random) -> bytes:
    """A file within an archive, which is packed again."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # noqa: BLE001 (an earlier change may have left no archive)
        return _bytes_changed(data, rng)
    if not members:
        return data
    name = rng.choice(list(members))
    members[name] = _bytes_changed(members[name], rng)
    if rng.random() < 0.1:
        del members[rng.choice(list(members))]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, content in members.items():
            archive.writestr(one, content)
    return made.getvalue()


def _json_changed(data: bytes, rng: random.Random) -> bytes:
    """A value within one JSON document, or within a line of several."""
    try:
        return json.dumps(_odd_within(json.loads(data), rng)).encode(errors="surrogatepass")
    except (ValueError, RecursionError):
        lines = data.split(b"\n")
    k = rng.randrange(len(lines))
    try:
        new = json.dumps(_odd_within(json.loads(lines[k]), rng)).encode(errors="surrogatepass")
    except (ValueError, RecursionError):
        return _bytes_changed(data, rng)
    return b"\n".join([*lines[:k], new, *lines[k + 1 :]])


def _odd_within(value: Any, rng: random.Random) -> Any:
    within = (
        list(value)
        if isinstance(value, dict)
        else range(len(value) if isinstance(value, list) else 0)
    )
    if not within or rng.random() < 0.15:
        return rng.choice(ODD)
    key = rng.choice(list(within))
    new = dict(value) if isinstance(value, dict) else list(value)
    if isinstance(new, dict) and rng.random() < 0.15:
        del new[key]
    else:
        new[key] = _odd_within(value[key], rng)
    return new


def defect(target: Target, data: bytes) -> str | None:
    """What a target did that it must not, as one line and a traceback; None where all is well."""

    def too_slow(*_: object) -> None:
        raise Slow

    # Of a processor: by the clock a loaded machine would be the defect.
    before = signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, SLOW_S)
    try:
        target.run(data)
    except Slow:
        return f"over {SLOW_S} s\n{traceback.format_exc()}"
    except MemoryError:
        return f"memory\n{traceback.format_exc()}"
    except target.may_raise as error:
        return None if str(error) else f"no sentence\n{traceback.format_exc()}"
    except Exception as error:  # noqa: BLE001 (this is what is looked for)
        return f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return None


def fuzz(
    name: str, target: Target, seconds: float, seed: int, keep: Path | None
) -> tuple[int, int]:
    """How many inputs were tried, and how many different defects they showed."""
    rng = random.Random(f"{name} {seed}")
    seen: set[str] = set()
    pool = list(target.seeds)
    n = 0
    end = time.process_time() + seconds
    while (n < _N_SMOKE) if seconds == 0 else (time.process_time() < end):
        data = changed(rng.choice(pool), rng)
        found = defect(target, data)
        n += 1
        if found is None:
            continue
        lines = [line for line in found.splitlines() if "/src/fabula/" in line]
        place = lines[-1] if lines else found.splitlines()[0]
        if place in seen:
            continue
        seen.add(place)
        print(f"{name}: {found}", flush=True)
        if keep is not None:
            (keep / name).mkdir(parents=True, exist_ok=True)
            (keep / name / f"{len(seen)}").write_bytes(data)
    return n, len(seen)


def with_atheris(name: str, seconds: float, seed: int) -> None:
    """Led by coverage of Fabula's own code; ends at the first defect, which it writes here."""
    import atheris

    with atheris.instrument_imports(include=["fabula"]):
        target = targets()[name]

    def test_one(data: bytes) -> None:
        if (found := defect(target, data)) is not None:
            raise RuntimeError(found)

    def mutate(data: bytes, max_size: int, number: int) -> bytes:
        rng = random.Random(number)
        chosen = data or target.seeds[0]
        return (changed(chosen, rng) if rng.random() < 0.5 else atheris.Mutate(chosen, max_size))[
            :max_size
        ]

    with tempfile.TemporaryDirectory(prefix="fabula-fuzz-") as corpus:
        for k, data in enumerate(target.seeds):
            Path(corpus, str(k)).write_bytes(data)
        words = [f"-max_total_time={seconds:.0f}", f"-seed={seed + 1}", "-max_len=65536",
                 "-rss_limit_mb=4096", corpus]  # fmt: skip
        atheris.Setup([sys.argv[0], *words], test_one, custom_mutator=mutate)
        atheris.Fuzz()


def each_with_atheris(names: Collection[str], seconds: float, seed: int, keep: Path | None) -> int:
    """Every target in a process of its own, which its end ends; how many showed a defect."""
    n_defects = 0
    for name in names:
        words = ["--atheris", "--only", name, "--seconds", str(seconds), "--seed", str(seed)]
        with tempfile.TemporaryDirectory(prefix="fabula-fuzz-") as folder:
            done = subprocess.run(
                [sys.executable, __file__, *words], cwd=folder, capture_output=True, check=False
            )
            said = done.stderr.decode(errors="replace")
            runs = re.findall(r"^#(\d+).*?cov: (\d+)", said, re.MULTILINE)
            n_runs, coverage = map(int, runs[-1]) if runs else (0, 0)
            found = [file for file in Path(folder).iterdir() if file.is_file()]
            if done.returncode != 0:
                n_defects += 1
                print(f"{name}: {(done.stdout.decode(errors='replace') + said)[-3000:]}")
                if keep is not None:
                    (keep / name).mkdir(parents=True, exist_ok=True)
                    for file in found:
                        shutil.copy(file, keep / name / file.name[:40])
        print(f"{name}: {n_runs:,} inputs, {coverage:,} branches reached, "
              f"{int(done.returncode != 0)} defects", flush=True)  # fmt: skip
    return n_defects


@dataclass(frozen=True)
class Target:
    """A parser, and sound inputs to begin with."""

    run: Run
    seeds: tuple[bytes, ...]
    may_raise: tuple[type[BaseException], ...] = (FabulaError,)


def on_file(read: Callable[[Path], object], name: str) -> Run:
    """A parser of a file, for bytes."""

    def run(data: bytes) -> object:
        with tempfile.TemporaryDirectory(prefix="fabula-fuzz-") as folder:
            path = Path(folder, name)
            path.write_bytes(data)
            return read(path)

    return run


def document_targets() -> dict[str, Target]:
    from fabula.text import read_documents
    from fabula.text.readers import READERS, TABLES, Fields
    from fabula.text.sources import read_table

    found = {}
    for kind, read in READERS.items():

        def of_stream(data: bytes, kind: str = kind, read: Any = read) -> object:
            return list(read(io.BytesIO(data), f"a.{kind}", fields=Fields()))

        # What can unpack is read by a process of its own, which turns whatever it meets into a
        # sentence: only time, memory and the end of the process count there.
        aside = getattr(read, "limits", None) is not None
        found[kind] = Target(
            of_stream, documents_of(kind), (Exception,) if aside else (FabulaError,)
        )
    found["jsonl.gz"] = Target(
        on_file(lambda path: list(read_documents([path])), "a.jsonl.gz"), documents_of("jsonl.gz")
    )
    for kind in set(TABLES) - {"parquet", "xlsx"}:
        found[f"table.{kind}"] = Target(
            on_file(lambda path: list(read_table(path)), f"a.{kind}"), documents_of(kind)
        )
    return found


ROWS = [{"id": "a", "text": "The lamp went out.\n\nShe said “no”.", "author": "x", "year": 1900}]


def documents_of(kind: str) -> tuple[bytes, ...]:
    """Small sound documents of a format."""
    made = io.BytesIO()
    text = "# Chapter 1\n\nThe lamp went out. “No,” she said.\n\n***\n\nIt was late."
    if kind in ("txt", "md"):
        return text.encode(), text.encode("utf-16")
    if kind.startswith("jsonl"):
        data = "".join(json.dumps(row) + "\n" for row in ROWS * 2).encode()
        import gzip

        return (gzip.compress(data) if kind.endswith(".gz") else data,)
    if kind in ("csv", "tsv"):
        mark = "," if kind == "csv" else "\t"
        return (f'id{mark}text\n1{mark}"The ""lamp"" went out.\nLate."\n'.encode(),)
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(ROWS), made)
    elif kind == "xlsx":
        import xlsxwriter

        with xlsxwriter.Workbook(made, {"in_memory": True}) as book:
            sheet = book.add_worksheet()
            for k, row in enumerate([["id", "text"], ["a", "The lamp went out."]]):
                sheet.write_row(k, 0, row)
    elif kind == "docx":
        import docx

        word = docx.Document()
        word.add_heading("Chapter 1", 1)
        word.add_paragraph("The lamp went out.")
        word.save(made)
    elif kind == "rtf":
        return (rb"{\rtf1\ansi\ansicpg1252 {\b The lamp}\par went \u8220? out \'93.\par}",)
    elif kind == "wet":
        return (
            b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a.example/\r\n"
            b"Content-Length: 18\r\n\r\nThe lamp went out.\r\n\r\n",
        )
    elif kind == "pdf":
        from pypdf import PdfReader, PdfWriter

        # Without a table of its objects, which readers rebuild.
        writer = PdfWriter(clone_from=PdfReader(io.BytesIO(_PDF)))
        writer.write(made)
    else:
        with zipfile.ZipFile(made, "w") as archive:
            for name, content in _ARCHIVES[kind].items():
                archive.writestr(name, content)
    return (made.getvalue(),)


_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]"
    b"/Count 1>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R"
    b"/Resources<</Font<</F1 5 0 R>>>>>>endobj\n4 0 obj<</Length 44>>stream\n"
    b"BT /F1 12 Tf 10 100 Td (The lamp went) Tj ET\nendstream endobj\n"
    b"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n"
    b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n0\n%%EOF"
)
_PAGE = "<html><body><h1>One</h1><p>The lamp went <i>out</i>.</p></body></html>"
_ARCHIVES: dict[str, dict[str, str]] = {
    "epub": {
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:'
        'container"><rootfiles><rootfile full-path="o.opf"/></rootfiles></container>',
        "o.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>T</dc:title></metadata><manifest>'
        '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine>'
        '<itemref idref="a"/></spine></package>',
        "a.xhtml": _PAGE,
    },
    "odt": {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:'
        'xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">'
        '<office:body><office:text><text:h text:outline-level="1">One</text:h><text:p>The '
        '<text:s text:c="2"/>lamp.</text:p></office:text></office:body></office:document-content>',
    },
    "scriv": {
        "a.scrivx": '<ScrivenerProject><Binder><BinderItem UUID="1" Type="DraftFolder"><Children>'
        '<BinderItem UUID="2" Type="Text"><Title>One</Title></BinderItem></Children></BinderItem>'
        "</Binder></ScrivenerProject>",
        "Files/Data/2/content.rtf": r"{\rtf1\ansi The lamp.\par}",
    },
}  # fmt: skip


def settings_targets() -> dict[str, Target]:
    """Files that users write by hand."""
    from fabula.feedback.eliciting import load_prompts
    from fabula.jobs.shared_settings import read_config
    from fabula.raters.labels import read_labels
    from fabula.rubrics.load import load_rubric, parse_rubric
    from fabula.studies.design import load_study

    def read_config_at(path: Path) -> object:
        with contextlib.chdir(path.parent):
            return read_config()

    rubric = load_rubric("ttcw")
    item = rubric.items[0].id
    labels = [{"document": name, "item": item, "rater": "r", "value": "Yes"} for name in "ab"]
    label_rows = "".join(json.dumps(row) + "\n" for row in labels).encode()
    csv = f"document,item,rater,value\na,{item},r,Yes\n".encode()
    fabula = ROOT / "src" / "fabula"
    return {
        "rubric": Target(
            lambda data: parse_rubric(data, "r.toml"),
            tuple(path.read_bytes() for path in (fabula / "rubrics").glob("*.toml")),
        ),
        "study": Target(on_file(load_study, "s.toml"), (_STUDY,)),
        "prompts": Target(
            on_file(load_prompts, "p.toml"),
            (
                b'bulleted = ["a"]\n[prompts]\na = "Read {story}."\n[[examples]]\nstory = "x"\n'
                b'feedback = "y"\n',
            ),
        ),
        "config": Target(
            on_file(read_config_at, "fabula.toml"),
            (b'reference = ["a.ref"]\nmodel = "local"\n[prices]\nx = "1/10"\n',),
        ),
        "labels.jsonl": Target(on_file(lambda p: read_labels(p, rubric), "l.jsonl"), (label_rows,)),
        "labels.csv": Target(on_file(lambda p: read_labels(p, rubric), "l.csv"), (csv,)),
    }


def result_targets() -> dict[str, Target]:
    """Files that Fabula writes."""
    from fabula.continuation.scores import read_contexts
    from fabula.core.provenance import read_record
    from fabula.core.store import located_rows, read_measurements
    from fabula.groups.comparison import MeasuredTexts, compare_groups
    from fabula.groups.phrase_list import read_phrases
    from fabula.judging.trust import _read
    from fabula.novelty.detector import read_detectors
    from fabula.reference.files import Manifest
    from fabula.stats.norms import read_groups

    def compared(path: Path) -> object:
        measured = MeasuredTexts("author", are_rows=True)
        for row, where in located_rows(path):
            measured.add(row, where)
        return compare_groups(measured)

    def target(read: Callable[[Path], object], name: str) -> Target:
        return Target(on_file(read, name), ((GOLDEN / "files" / name).read_bytes(),))

    scores = _scores((GOLDEN / "files" / "scores.jsonl").read_bytes())
    return {
        "manifest": target(lambda path: Manifest.read(path.parent), "manifest.json"),
        "groups": target(read_groups, "groups.jsonl"),
        "measurements": target(lambda path: list(read_measurements(path)), "measurements.jsonl"),
        "passages": target(read_contexts, "passages.jsonl"),
        "trust": target(lambda path: _read(path), "trust.jsonl"),
        "scores": Target(on_file(compared, "s.jsonl"), (scores,)),
        "detectors": target(read_detectors, "detectors.json"),
        "phrases": target(read_phrases, "phrases.jsonl"),
        "record": target(read_record, "record.provenance.json"),
    }


def released_targets() -> dict[str, Target]:
    """Files that others publish: models, and the authors' data."""
    from fabula.feedback.released import read_released_file
    from fabula.models.gguf_layout import read_layout
    from fabula.rubrics.released import read_judge_answers, read_released_stories

    stories = json.dumps([{"story_id": "3_GPT4", "content": "The lamp.", "story_name": "x"}])
    answered = b'{"id": "story_3_GPT4_test7", "response": "Yes"}'
    fields = ("story_id", "noise", "prompt", "nshot", "model", "story", "gold_story", "feedback")
    released = dict.fromkeys(fields, "x") | {"noise": "swap", "nshot": 0, "model": "gemma2 9b it"}
    return {
        "gguf": Target(on_file(read_layout, "m.gguf"), (_gguf(),), (FabulaError, ValueError)),
        "released-stories": Target(on_file(read_released_stories, "s.json"), (stories.encode(),)),
        "released-answers": Target(on_file(read_judge_answers, "a.jsonl"), (answered,)),
        "released-feedback": Target(
            on_file(read_released_file, "f.jsonl"), (json.dumps(released).encode(),)
        ),
    }


_STUDY = b"""
id = "s"
title = "Reading"
design = "ttcw"
documents = "stories.jsonl"
group_field = "group"
rubric = "ttcw"
raters = 3
per_participant = 1
hours = 24
reason_words = 4
language = "en"
seed = 0
[texts]
welcome = "Read."
consent = "Agree?"
instructions = "Answer."
[[about]]
id = "age"
question = "How old are you?"
low = 18
high = 99
"""


def _scores(rows: bytes) -> bytes:
    """Three rows for each of two authors."""
    row = json.loads(rows.splitlines()[0])
    made = [row | {"id": f"{k}", "author": "ab"[k % 2]} for k in range(6)]
    return "".join(json.dumps(one) + "\n" for one in made).encode()


def _gguf() -> bytes:
    """The beginning of a model: two fields, a list of words, and one tensor."""
    import struct

    def text(words: str) -> bytes:
        return struct.pack("<Q", len(words)) + words.encode()

    fields = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("llama.block_count") + struct.pack("<II", 4, 1),
        text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
    ]
    tensor = text("token_embd.weight") + struct.pack("<IQQIQ", 2, 32, 2, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(fields))
    return head + b"".join(fields) + tensor + bytes(400)


def text_targets() -> dict[str, Target]:
    """What models, servers, browsers and command lines say, as text."""
    from fabula.core.scales import ChoiceScale, NumberScale, RankScale, TextScale
    from fabula.feedback.answer_lines import QuotableText
    from fabula.feedback.points import read_answer
    from fabula.models.base import Answer
    from fabula.models.cost import parse_prices
    from fabula.models.verdicts import read_verdict
    from fabula.novelty.detector import Label
    from fabula.rubrics.conditions import Condition
    from fabula.rubrics.load import load_rubric
    from fabula.text.refusals import is_refusal

    rubric = load_rubric("ttcw")
    scales = (
        rubric.items[0].scale, ChoiceScale(options=("good", "bad", "neither")),
        NumberScale(low=1, high=5), RankScale(), TextScale(),
    )  # fmt: skip
    draft = QuotableText.of("The lamp went out. She held it. Nobody in the harbour woke.")
    answers = tuple(
        json.loads(line)["answer"].encode()
        for line in (GOLDEN / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()[:60]
        if "answer" in json.loads(line)
    ) or (b"Yes. The story is good.",)
    remarks = b'1. "The lamp went out" is abrupt. (severity: 4)\n\n- **She held it**: what?\n'

    def on_text(read: Callable[[str], object]) -> Run:
        return lambda data: read(data.decode("utf-8", "surrogateescape"))

    return {
        "verdict": Target(
            on_text(lambda t: [read_verdict(Answer(t), one, "reason-first") for one in scales]),
            answers,
        ),
        "remarks": Target(on_text(lambda t: read_answer(t, 1, draft)), (remarks,)),
        "refusal": Target(on_text(is_refusal), answers),
        "condition": Target(on_text(Condition.parse), (b"item1 == 'Yes' and not item2",)),
        "prices": Target(on_text(parse_prices), (b"1/10", b"gpt=1/2,other=0.5/3")),
        "label": Target(on_text(Label.parse), (b"author=human",)),
    }


def targets() -> dict[str, Target]:
    """Every parser, by its name."""
    return {
        **document_targets(),
        **settings_targets(),
        **result_targets(),
        **released_targets(),
        **text_targets(),
    }


def main() -> None:
    options = corpora.options(
        __doc__, seconds=(20.0, "of a processor, per target"), only="", seed=0, keep=Path,
        atheris=False,
    )  # fmt: skip
    if options.atheris and options.only:
        with_atheris(options.only, options.seconds, options.seed)
        return
    chosen = {n: one for n, one in targets().items() if options.only in ("", n)}
    if options.atheris:
        keep = None if options.keep is None else options.keep.resolve()
        sys.exit(bool(each_with_atheris(chosen, options.seconds, options.seed, keep)))
    n_defects = 0
    for name, target in chosen.items():
        n, found = fuzz(
            name, target, 0 if corpora.SMOKE else options.seconds, options.seed, options.keep
        )
        n_defects += found
        print(f"{name}: {n:,} inputs, {found} defects", flush=True)
    sys.exit(1 if n_defects else 0)


if __name__ == "__main__":
    main()
