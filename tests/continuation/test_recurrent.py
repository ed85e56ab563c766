"""The recurrent network, trained for real; small, but the code is that of the large one."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [neural]")

from fabula.continuation import recurrent  # noqa: E402
from fabula.continuation.corpus import Corpus, build_corpus  # noqa: E402
from fabula.continuation.recurrent import MODEL_FILE, Recurrent, train_recurrent  # noqa: E402
from fabula.continuation.scores import Story  # noqa: E402
from fabula.core.errors import CorpusError, InputError  # noqa: E402
from fabula.core.types import Document  # noqa: E402

SMALL = recurrent.Network(n_embedding=12, n_hidden=16, n_layers=2)
STORY = "The dog saw a cat. The cat saw a bird. The bird flew away. The dog was sad.\n\n"


def corpus_at(folder: Path, n_stories: int = 16) -> Corpus:
    texts = [Document(str(k), STORY * (1 + k % 3)) for k in range(n_stories)]
    return build_corpus(texts, folder, min_count=1)


def training(**changes: object) -> recurrent.Training:
    return recurrent.Training(
        **{"n_epochs": 3, "n_lanes": 5, "window_tokens": 7, "learning_rate": 0.02,
           "checkpoint_windows": 3, "precision": "float32", **changes}
    )  # type: ignore[arg-type]  # fmt: skip


@pytest.mark.slow
def test_it_learns_and_its_perplexity_falls_below_that_of_words_alone(tmp_path: Path):
    corpus = corpus_at(tmp_path, 40)
    progress = train_recurrent(corpus, training(n_epochs=6), SMALL)
    perplexities = [row["perplexity"] for row in progress.log if "perplexity" in row]
    counts = corpus.vocabulary.counts[1:] / corpus.vocabulary.counts[1:].sum()
    unigram = math.exp(-float((counts * np.log(counts)).sum()))
    assert len(perplexities) == 6
    assert perplexities[-1] < unigram / 2
    sentence = Recurrent(corpus, temperature=0.1).continue_(
        Story("p", ("The dog saw a cat.",), None), np.random.default_rng(0)
    )
    assert sentence in {"The cat saw a bird.", "The dog saw a cat.", "The bird flew away."}


@pytest.mark.long
def test_a_training_that_was_killed_goes_on_and_ends_with_the_same_weights(tmp_path: Path):
    whole, killed = (corpus_at(tmp_path / name, 40) for name in ("whole", "killed"))
    train_recurrent(whole, training(), SMALL)
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from fabula.continuation.corpus import Corpus\n"
        "from fabula.continuation.recurrent import Network, Training, train_recurrent\n"
        "train_recurrent(Corpus.open(Path(sys.argv[1])), Training(n_epochs=3, n_lanes=5, "
        "window_tokens=7, learning_rate=0.02, checkpoint_windows=3, precision='float32'), "
        "Network(12, 16, 2), report=lambda p: (print(p.window, flush=True), time.sleep(0.02)))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(killed.folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(40):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    assert (killed.folder / "recurrent" / "checkpoint.pt").exists()
    seen: list[int] = []
    train_recurrent(killed, training(), SMALL, report=lambda p: seen.append(len(p.log)))
    assert seen[0] > 30  # it did not start over
    assert_same_weights(whole, killed)


@pytest.mark.slow
def test_another_setting_does_not_go_on_from_a_checkpoint(tmp_path: Path):
    corpus = corpus_at(tmp_path)
    train_recurrent(corpus, training(n_epochs=1), SMALL)
    with pytest.raises(InputError, match="`restart`"):
        train_recurrent(corpus, training(n_epochs=2, seed=1), SMALL)
    progress = train_recurrent(corpus, training(n_epochs=2, seed=1), SMALL, restart=True)
    assert progress.window == 2 * progress.n_windows


def assert_same_weights(one: Corpus, other: Corpus) -> None:
    first, second = (
        torch.load(c.folder / MODEL_FILE, weights_only=True)["weights"] for c in (one, other)
    )
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_more_passes_go_on_where_fewer_ended(tmp_path: Path):
    one, both = corpus_at(tmp_path / "one"), corpus_at(tmp_path / "both")
    train_recurrent(one, training(n_epochs=1), SMALL)
    before = (one.folder / MODEL_FILE).stat().st_mtime_ns
    time.sleep(0.01)
    assert isinstance(train_recurrent(one, training(n_epochs=1), SMALL), recurrent.Progress)
    assert (one.folder / MODEL_FILE).stat().st_mtime_ns == before
    train_recurrent(one, training(n_epochs=2), SMALL)
    train_recurrent(both, training(n_epochs=2), SMALL)
    assert_same_weights(one, both)


def test_the_network_belongs_to_its_texts_and_a_damaged_one_says_so(tmp_path: Path):
    corpus = corpus_at(tmp_path)
    with pytest.raises(CorpusError, match="`kind` recurrent"):
        Recurrent(corpus)
    train_recurrent(corpus, training(n_epochs=1), SMALL)
    generator = Recurrent(corpus, temperature=1.5)
    passage = Story("p", ("The dog saw a cat.",), None)
    drawn = [generator.continue_(passage, np.random.default_rng(k % 3)) for k in range(6)]
    assert drawn[:3] == drawn[3:], "the same seed draws the same sentence"
    assert len(set(drawn)) > 1
    assert "unknown" not in "".join(drawn)
    path = tmp_path / MODEL_FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:1000])
    with pytest.raises(CorpusError, match="damaged"):
        Recurrent(corpus)
    path.write_bytes(whole)
    with pytest.raises(CorpusError, match="other texts"):
        Recurrent(corpus_at(tmp_path, 17))


def test_lanes_read_every_story_once_from_its_beginning_to_its_end():
    stories = [np.arange(1, 1 + n, dtype=np.uint32) for n in (3, 9, 1, 4)]
    read: list[list[int]] = []
    lanes: dict[int, list[int]] = {}
    for inputs, targets, begins in recurrent._lanes(stories, 2, 4, start=99):
        for lane in range(2):
            said = targets[lane][targets[lane] >= 0].tolist()
            if begins[lane]:
                assert inputs[lane, 0] == 99
                lanes[lane] = []
                read.append(lanes[lane])
            if said:
                lanes[lane].extend(said)
                # what is read is what was said before it
                assert inputs[lane, 1 : len(said)].tolist() == said[:-1]
    assert read == [story.tolist() for story in stories]
