"""Ratings of words: the mean by hand, what is found by its lemma, and files that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fabula.cli.main import cli
from fabula.errors import InputError, ModelError
from fabula.measures.norms import NormInstrument, read_norms
from fabula.text.pipeline import load_pipeline
from fabula.types import Document

TABLE = "Word,Bigram,Conc.M,Conc.SD\ndog,0,4.85,0.6\nwalk,0,4.07,1\nidea,0,1.61,1\nbe,0,1.85,1\n"
STORY = (
    "The dogs walked. The dog was walking. The dogs walk! The ideas walked, and the idea was a dog."
)


@pytest.fixture(autouse=True, scope="module")
def pipeline() -> None:
    try:
        load_pipeline(("tok2vec", "tagger"))
    except ModelError as error:
        pytest.skip(str(error))


@pytest.fixture
def table(tmp_path: Path) -> str:
    (tmp_path / "c.csv").write_text(TABLE + "zebra crossing,1,4.9,0.1\nvoid,0,,\n")
    return f"{tmp_path / 'c.csv'}#Conc.M"


def test_the_mean_is_over_words_and_lemmas_as_often_as_they_stand(table: str) -> None:
    """By hand: 4 times dog, 4 times walk, twice idea and was; 19 words."""
    norms = read_norms(table)
    assert norms.values == {"dog": 4.85, "walk": 4.07, "idea": 1.61, "be": 1.85}
    measured = list(NormInstrument(norms).measure([Document("d", STORY), Document("e", "A dog.")]))
    values = {one.item: one.value for one in measured[0]}
    expected = (4 * 4.85 + 4 * 4.07 + 2 * 1.61 + 2 * 1.85) / 12
    assert values["mean"] == pytest.approx(expected)
    assert values["rated"] == pytest.approx(12 / 19)
    short = {one.item: one for one in measured[1]}
    assert (short["mean"].value, short["mean"].missing_reason) == (None, "too_short")
    assert short["rated"].value == 0.5


def test_other_languages_and_no_words_are_missing_with_the_reason(table: str) -> None:
    finnish = "Hän käveli metsässä ja mietti, miksi kukaan ei ollut kertonut hänelle totuutta."
    texts = [Document("f", finnish), Document("n", "...")]
    found = [[one.missing_reason for one in said] for said in
             NormInstrument(read_norms(table)).measure(texts)]  # fmt: skip
    assert found[0][0] is not None
    assert found[0][0].startswith("not English")
    assert found[1] == ["no_words", "no_words"]


@pytest.mark.parametrize(
    ("content", "column", "said"),
    [
        (TABLE, "", "3 columns contain numbers .'Bigram', 'Conc.M', 'Conc.SD'.; choose one"),
        (TABLE, "#valence", "no column 'valence'; the columns are 'Word', 'Bigram'"),
        ("token,x\na,1\n", "", "no column of words"),
        ("word,x\na,1\nb,low\n", "#x", "line 3.*x is 'low', not a number"),
        ("word,x\na,1\nA,2\n", "", "'a' already has another x"),
        ("word,x\na b,1\n", "", "contains no rated words"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(
    tmp_path: Path, content: str, column: str, said: str
) -> None:
    (tmp_path / "n.csv").write_text(content)
    with pytest.raises(InputError, match=said):
        read_norms(f"{tmp_path / 'n.csv'}{column}")


def test_ratings_are_numbers_of_the_report_and_of_groups(tmp_path: Path, table: str) -> None:
    rows = [{"id": f"s{k}", "text": STORY} for k in range(3)]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    without = [
        word for part in ("profile", "originality", "book") for word in
        ("--without", part)
    ]  # fmt: skip
    group = tmp_path / "g.jsonl"
    done = CliRunner().invoke(
        cli, ["groups", "measure", str(tmp_path / "s.jsonl"), "--norms", table, "--name", "us",
              "--kind", "people", "--out", str(group), *without],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    (tmp_path / "d.txt").write_text(STORY)
    given = ["report", str(tmp_path / "d.txt"), "--norms", table, "--groups", str(group), *without]
    found = json.loads(CliRunner().invoke(cli, [*given, "--without", "lines", "--json"]).stdout)
    [mean, rated] = found["texts"][0]["instruments"]["norms"]
    assert (mean["item"], rated["item"]) == ("mean", "rated")
    assert mean["signature"].startswith("norms|list:Conc.M@")
    assert found["texts"][0]["share_of_group_below"]["norms.mean"].keys() == {"us"}
