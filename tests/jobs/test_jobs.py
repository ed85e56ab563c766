"""Jobs from Python: what the commands do, without a command."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.serving import serving

from fabula.continuation.job import GenerateSettings
from fabula.core.errors import CallFailed
from fabula.core.settings import SettingsError
from fabula.core.types import Document
from fabula.feedback.job import CorruptSettings, ElicitSettings, ScoreSettings
from fabula.jobs.job import WholeStream
from fabula.novelty.detection import DetectorSettings
from fabula.reference.job import (
    BuildSettings,
    BuiltCorpus,
    OpeningSettings,
    SampleSettings,
    WriterSettings,
    build,
    n_bytes_of,
    openings,
)

OUT = Path("o")
TEXTS = [
    Document(f"d{k}", f"The rain had not stopped on day {k}, and nobody came.") for k in range(4)
]


def built(
    texts: list[Document], settings: BuildSettings, writers: WriterSettings | None = None
) -> BuiltCorpus:
    own = writers or WriterSettings()
    return build(WholeStream(lambda: iter(texts)), settings, SampleSettings(), own)


@pytest.mark.parametrize(
    ("size", "n_bytes"),
    [("4GB", 4 << 30), ("800MB", 800 << 20), ("1.5 kib", 1536), ("64", 64), ("2T", 2 << 40)],
)
def test_an_amount_of_memory_is_read_in_powers_of_two(size: str, n_bytes: int):
    assert n_bytes_of(size) == n_bytes


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: BuildSettings(out="http://h/ref"), "`out` http://h/ref: name a folder"),
        (lambda: BuildSettings(out="r", memory="much"), "`memory` 'much' is not an amount"),
        (lambda: ScoreSettings(by="model*colour"), "`by` colour: must be one of model"),
        (lambda: CorruptSettings(out=OUT, methods="swap,burn"), "`methods` burn: must be one of"),
        (lambda: ElicitSettings(out=OUT, shots="0,two"), "`shots` 0,two: write numbers"),
        (lambda: DetectorSettings("a=b", fpr="0.1,2"), "`fpr` 0.1,2: shares must be between 0 and"),
        (lambda: DetectorSettings("a=b", fpr="few"), "`fpr` few: write shares such as"),
        (lambda: openings([], OpeningSettings(OUT, formats=("odd",))),
         "`formats` odd: must be one of plain"),
        (lambda: GenerateSettings(OUT, OUT), "`folder` DIR, `models` MODEL, or both"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused_whoever_gives_it(make: Any, said: str):
    with pytest.raises(SettingsError, match=re.escape(said)):
        make()


def test_no_corpus_is_built_of_some_of_the_answers(tmp_path: Path):
    def one_fails(_body: dict[str, Any], n: int) -> Any:
        return (500, {}) if n % 2 else "And nobody came until the spring."

    with serving(one_fails) as served:
        writers = WriterSettings((f"{served.url}#m",), max_retries=0, n_parallel=1)
        with pytest.raises(CallFailed, match="calls failed; the texts so far are kept in"):
            built(TEXTS[:2], BuildSettings(out=tmp_path / "w"), writers)
    assert not (tmp_path / "w").exists()
    assert (tmp_path / "w.jsonl").read_text().count("until the spring") == 1
