"""Public corpora by name: each is read from files in its own layout, and sampled fairly."""

import gzip
import io
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.commands import invoke
from tests.corpus_serving import Holdings, serving_corpora

from fabula.core.errors import CorpusError, InputError
from fabula.reference import catalogue as catalogue_module
from fabula.reference.backend import Age
from fabula.reference.catalogue import Files, SampleRule, choose_sample, is_kept, read_catalogue
from fabula.reference.files import Manifest
from fabula.reference.search import Reference
from fabula.text import read_documents

SHIPPED = Path(catalogue_module.__file__).with_name("catalogue.toml")
HUB = "huggingface.co/datasets"
Build = Callable[..., str]
LISTING = "deepmind/pg19/resolve/main/data/train_files.txt"


@pytest.fixture
def held() -> Iterator[Holdings]:
    with serving_corpora() as holdings:
        yield holdings


@pytest.fixture
def known(held: Holdings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The catalogue that ships, with the local server for all others."""
    local = held.localised(SHIPPED, tmp_path / "catalogue.toml")
    monkeypatch.setattr(catalogue_module, "_SHIPPED", local)
    read_catalogue.cache_clear()
    yield local
    read_catalogue.cache_clear()


def words(seed: object, n: int) -> str:
    chance = random.Random(str(seed))
    return " ".join(f"w{chance.randrange(5000)}" for _ in range(n))


def hold_pg19(held: Holdings, n: int = 30) -> None:
    numbers = range(100, 100 + n)
    names = [f"train/{k}.txt" for k in numbers]
    held.files[f"{HUB}/{LISTING}"] = "\n".join(names).encode()
    rows = [f'{k},"Book, {k}",{1700 + k},http://www.gutenberg.org/ebooks/{k}' for k in numbers]
    base = "storage.googleapis.com/deepmind-gutenberg"
    held.files[f"{base}/metadata.csv"] = "\n".join(rows).encode()
    for name in names:
        held.files[f"{base}/{name}"] = words(name, 200).encode()


@pytest.fixture
def build(known: Path, tmp_path: Path) -> Build:
    """What the command says, on one line; the corpus is `tmp_path / out`."""

    def run(given: str, out: str = "ref", *, refused: bool = False) -> str:
        more = ("--out", tmp_path / out, "--jobs", "1")
        result = invoke("reference", "build", *given.split(), *more, code=None)
        assert (result.exit_code != 0) == refused, result.output
        kinds = InputError | CorpusError | SystemExit | None
        assert isinstance(result.exception, kinds)
        return " ".join(f"{result.output} {result.exception or ''}".split())

    return run


def test_every_entry_says_what_it_must_and_its_pages():
    catalogue = read_catalogue()
    for one in catalogue.corpora.values():
        assert one.licence != "unknown"
        assert all((one.tells, one.tells_not, one.checked))
        assert all(page.startswith("https://") for page in one.checked)
    known = {"pg19", "gutenberg", "wikipedia", "c4", "dolma", "commoncrawl"}
    assert known <= catalogue.corpora.keys()
    for index in catalogue.indexes.values():
        assert index.by_characters == index.name.startswith("v2_")


def test_pg19_is_read_with_titles_and_years(held: Holdings, build: Build, tmp_path: Path):
    hold_pg19(held)
    assert "5 documents, 1,000 words" in build("pg19 --sample 1K")
    reference = Reference.open(tmp_path / "ref")
    document = reference.document(0)
    number = int(document.id.removeprefix("train/").removesuffix(".txt"))
    assert document.meta == {"title": f"Book, {number}", "year": 1700 + number}
    years = [reference.document(k).meta["year"] for k in range(5)]
    assert reference.about.age == Age(min(years), max(years))
    # Only what the sample holds is fetched.
    assert len([path for path in held.bodies() if "/train/" in path]) == 5
    source = Manifest.read(tmp_path / "ref").source
    assert (source["name"], source["rule"], source["seed"]) == ("pg19", "files1", 0)
    n_asked = len(held.asked)
    assert "5 documents" in build("pg19 --sample 1K")
    # It is there: the texts are not fetched again.
    assert not [one for one in held.asked[n_asked:] if "/train/1" in one]
    said = build("pg19 --sample 2K", refused=True)
    assert "contains another reference corpus" in said


def test_a_sample_depends_on_its_seed_and_on_nothing_else(held: Holdings, build: Build):
    hold_pg19(held)
    said = (
        build(f"pg19 --sample 1K --seed {seed}", out)
        for seed, out in ((0, "a"), (0, "b"), (1, "c"))
    )
    a, b, c = (output.strip().rpartition(" ")[2] for output in said)
    assert a == b != c


def test_books_of_one_author_come_without_the_licence(held: Holdings, build: Build, tmp_path: Path):
    austen = '"Austen, Jane, 1775-1817",x,PR,y'
    table = (
        "Text#,Type,Issued,Title,Language,Authors,Subjects,LoCC,Bookshelves\n"
        f"121,Text,1994-04-01,Northanger Abbey,en,{austen}\n"
        '122,Text,1995-04-01,The Return,en,"Hardy, Thomas, 1840-1928",x,PR,y\n'
        f"123,Sound,1996-04-01,Read aloud,en,{austen}\n"
        f"124,Text,1997-04-01,Auf Deutsch,de,{austen}\n125,Text,1998-04-01,Lost,en,{austen}\n"
    )
    feed = "www.gutenberg.org/cache/epub/feeds/pg_catalog.csv.gz"
    held.files[feed] = gzip.compress(table.encode())
    held.files["gutenberg.pglaf.org/cache/epub/121/pg121.txt"] = (
        b"The Project Gutenberg eBook\r\n\r\n"
        b"*** START OF THE PROJECT GUTENBERG EBOOK NORTHANGER ***\r\n"
        b"\r\nNo one who had ever seen Catherine\r\n\r\n"
        b"*** END OF THE PROJECT GUTENBERG EBOOK NORTHANGER ***\r\nlicence\r\n"
    )
    said = build("gutenberg-mirror --sample all --author austen")
    assert "1 document, 7 words" in said
    assert "1 files listed by gutenberg-mirror do not exist" in said
    document = Reference.open(tmp_path / "ref").document(0)
    assert document.text == "No one who had ever seen Catherine\n"
    assert document.author == "Austen, Jane, 1775-1817"
    assert document.meta == {"title": "Northanger Abbey", "year": 1994}
    said = build("gutenberg-mirror --sample all --author Nobody", "none", refused=True)
    assert "no texts by an author named 'Nobody'" in said


def wet_file(pages: list[tuple[str, str]]) -> bytes:
    """As Common Crawl writes them: each record a member of its own of the gzip file."""
    records = [b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 9\r\n\r\nsoftware\n\r\n\r\n"]
    for address, text in pages:
        body = text.encode()
        head = (
            f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {address}\r\n"
            f"WARC-Date: 2025-07-11T08:00:00Z\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        records.append(head.encode() + body + b"\r\n\r\n")
    return b"".join(map(gzip.compress, records))


def test_common_crawl_is_read_from_wet_files(held: Holdings, build: Build, tmp_path: Path):
    base = "data.commoncrawl.org/crawl-data/CC-MAIN-2025-30"
    names = [f"crawl-data/CC-MAIN-2025-30/segments/1/wet/CC-{k:05d}.warc.wet.gz" for k in range(3)]
    held.files[f"{base}/wet.paths.gz"] = gzip.compress("\n".join(names).encode())
    for k, name in enumerate(names):
        texts = {f"{k}/{j}": f"Seite {k} {j}: {words((k, j), 40)} é" for j in range(4)}
        pages = [(f"http://a.org/{place}", text) for place, text in texts.items()]
        held.files[f"data.commoncrawl.org/{name}"] = wet_file(pages)
    assert "12 documents" in build("commoncrawl --sample all")
    reference = Reference.open(tmp_path / "ref")
    found = {d.id: d for d in map(reference.document, range(12))}
    assert found["http://a.org/2/3"].text == f"Seite 2 3: {words((2, 3), 40)} é"
    assert found["http://a.org/2/3"].meta == {"year": 2025}
    assert str(reference.about.age) == "2025 to 2025"


def test_json_lines_by_a_list_of_addresses(held: Holdings, build: Build, tmp_path: Path):
    names = [f"olmo-data.org/dolma/v1_5r2_sample-{k:04d}.json.gz" for k in range(2)]
    listing = "\n".join(f"{held.url}/{name}" for name in names)
    held.files[f"{HUB}/allenai/dolma/resolve/main/urls/v1_6-sample.txt"] = listing.encode()
    for k, name in enumerate(names):
        rows = [
            {"id": f"{k}-{j}", "text": words((k, j), 30), "source": "web", "metadata": {"x": 1}}
            for j in range(3)
        ]
        held.files[name] = gzip.compress("\n".join(map(json.dumps, rows)).encode())
    build("dolma --sample all")
    reference = Reference.open(tmp_path / "ref")
    documents = [reference.document(k) for k in range(6)]
    assert {d.id for d in documents} == {f"{k}-{j}" for k in range(2) for j in range(3)}
    # What a corpus says of a document beyond title, author and year is not kept.
    assert all(d.meta == {} for d in documents)
    assert reference.about.age == Age(None, 2024)
    assert str(reference.about.age) == "up to 2024"


def parquet(rows: list[dict[str, object]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink, row_group_size=20)
    return sink.getvalue()


def hold_wikipedia(held: Holdings, n_files: int = 12, n_rows: int = 100) -> None:
    base = f"{HUB}/wikimedia/wikipedia/resolve/main"
    for k in range(n_files):
        rows: list[dict[str, object]] = [
            {"id": str(j), "url": f"https://en.wikipedia.org/wiki/{k}_{j}", "title": f"T{k}_{j}",
             "text": words((k, j), 20)}
            for j in range(n_rows)
        ]  # fmt: skip
        name = f"20231101.en/train-{k:05d}-of-{n_files:05d}.parquet"
        held.files[f"{base}/{name}"] = parquet(rows)
    held.files[f"{base}/20231101.de/train.parquet"] = b"not read"


def test_parquet_on_the_hub_is_listed_and_sampled(held: Holdings, known: Path, tmp_path: Path):
    hold_wikipedia(held)
    # 12 files of 100 articles of 20 words; a tenth of them, from 8 files or more.
    text = known.read_text().replace("n_bytes = 20200062385", "n_words = 24000")
    known.write_text(text)
    build_from_hub(held, known, "wikipedia", "2.4K", tmp_path)
    manifest = Manifest.read(tmp_path / "ref")
    assert manifest.source is not None
    assert (manifest.source["n_files"], manifest.source["n_files_listed"]) == (8, 12)
    # 800 articles are read, of which 15 % are kept: 120, with a standard deviation of 10.
    assert manifest.source["share"] == pytest.approx(0.15, abs=0.005)
    assert 85 <= manifest.n_documents <= 155
    reference = Reference.open(tmp_path / "ref")
    document = reference.document(0)
    place = document.id.removeprefix("https://en.wikipedia.org/wiki/")
    assert document.meta == {"title": f"T{place}"}
    assert document.text == words(tuple(map(int, place.split("_"))), 20)
    assert reference.about.age.youngest == 2023


def test_books_on_the_hub_are_named_in_a_column_of_json(
    held: Holdings, known: Path, tmp_path: Path
):
    about = {"title": "A Book", "authors": "Austen, Jane", "issued": "2004-05-01"}
    rows: list[dict[str, object]] = [
        {"TEXT": words(k, 50), "SOURCE": "x", "METADATA": json.dumps({"text_id": k, **about})}
        for k in range(3)
    ]
    name = "data/train-00000-of-00037-abc.parquet"
    held.files[f"{HUB}/sedthh/gutenberg_english/resolve/main/{name}"] = parquet(rows)
    build_from_hub(held, known, "gutenberg", "all", tmp_path)
    document = Reference.open(tmp_path / "ref").document(2)
    assert (document.id, document.author) == ("2", "Austen, Jane")
    assert document.meta == {"title": "A Book", "year": 2004}


def build_from_hub(held: Holdings, known: Path, name: str, sample: str, folder: Path) -> None:
    """In a process of its own: the hub's client reads its environment once."""
    hub = {"HF_ENDPOINT": f"{held.url}/huggingface.co", "HF_HOME": str(folder / "hf")}
    code = (
        "import sys; from pathlib import Path; from fabula.__main__ import main; "
        f"from fabula.reference import catalogue; catalogue._SHIPPED = Path({str(known)!r}); main()"
    )
    given = ("--sample", sample, "--out", folder / "ref", "--jobs", "1")
    command = [sys.executable, "-c", code, "reference", "build", name, *given]
    subprocess.run(command, env={**os.environ, **hub}, capture_output=True, check=True)


def test_within_what_is_read_every_document_has_the_same_chance():
    # Over many seeds each place in a file is kept as often as the share says, first and last alike.
    for place in range(40):
        kept = sum(is_kept(seed, "a.parquet", place, 0.2) for seed in range(2000))
        # Standard deviation 17.9; 4 of them for 40 places.
        assert abs(kept - 400) < 72
    # Two files do not keep the same places.
    a, b = ([is_kept(0, name, k, 0.5) for k in range(64)] for name in "ab")
    assert a != b


def test_each_file_is_read_as_often_as_any_other(tmp_path: Path):
    listing = tmp_path / "files.txt"
    listing.write_text("\n".join(f"train/{k}.txt" for k in range(6)))
    collection = read_catalogue().corpus("pg19")
    collection = replace(collection, files=Files(listing=str(listing)))
    counts = dict.fromkeys((f"train/{k}.txt" for k in range(6)), 0)
    for seed in range(300):
        for file in choose_sample(collection, SampleRule(400, seed)).files[:2]:
            counts[file.key] += 1
    # 600 draws of six: 100 each, standard deviation 8.2.
    assert all(abs(n - 100) < 33 for n in counts.values())


@pytest.mark.parametrize("what", ["list of files", "a text"])
def test_where_the_network_fails_it_says_so_and_the_same_command_goes_on(
    what: str, held: Holdings, build: Build, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch
):  # fmt: skip
    monkeypatch.setattr(catalogue_module, "_FIRST_WAIT_S", 0.001)
    hold_pg19(held)
    build("pg19 --sample 1K", "whole")
    text = next(path for path in held.bodies() if "/train/" in path)
    held.broken.add(text if what == "a text" else f"{HUB}/{LISTING}")
    said = build("pg19 --sample 1K", refused=True)
    assert ".txt: cannot be read over the network" in said
    assert "run the same command again" in said
    held.broken.clear()
    assert "5 documents, 1,000 words" in build("pg19 --sample 1K")
    found, whole = (Reference.open(tmp_path / name).fingerprint for name in ("ref", "whole"))
    assert found == whole


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("pg19", "it contains about 1,973,136,207 words; set how many words to read"),
        ("pg19 --sample lots", "is not a number of words; write 100M"),
        ("pg19 --sample 0", "is not a number of words"),
        ("pg19 --sample 1K --author Austen", "requires gutenberg-mirror"),
        ("missing --sample 1K", "are only for corpora of the catalogue, and missing is not one"),
    ],
)
def test_what_cannot_be_done_is_refused(given: str, sentence: str, held: Holdings, build: Build):
    hold_pg19(held)
    assert sentence in build(given, refused=True)


def test_a_file_comes_before_the_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pg19").mkdir()
    (tmp_path / "pg19" / "own.txt").write_text("my own words")
    said = invoke("reference", "build", "pg19", "--out", "ref").output
    assert "1 document, 3 words" in said
    # A corpus without a source has the manifest that it had.
    row = json.loads((tmp_path / "ref" / "manifest.json").read_bytes())
    assert not {"source", "years"} & row.keys()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nabc", "not a WARC record"),
        (b"WARC/1.0\r\nContent-Length: 30\r\n\r\nabc", "truncated"),
        (b"WARC/1.0\r\nWARC-Type: conversion\r\n\r\nabc", "not a WARC record"),
    ],
)
def test_a_damaged_wet_file_is_refused(content: bytes, sentence: str, tmp_path: Path):
    (tmp_path / "a.wet").write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        list(read_documents([tmp_path / "a.wet"]))
