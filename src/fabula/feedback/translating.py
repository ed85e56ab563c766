"""Translate a story and back, a number of times.

Rashkin et al. 2025, section 4: English to German and back, ten times. Every round is kept. A
degenerate translation (the same words over and over, a text twice or half as long) is not damage
that a writer would cause, so the rounds stop before it, and before a round with words that are not
English. A language model that is asked to translate may refuse, or stop halfway: then the rounds
end too, with the reason. Only a complete answer counts as a translation.
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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.core.errors import InputError, ModelError, explain
from fabula.core.packages import needing
from fabula.models.base import HeldOpen, Model, Prompt, Sampling, Usage
from fabula.models.cost import Estimate, Price, estimate_tokens
from fabula.models.texts import unframed, why_no_text
from fabula.text import TextSettings
from fabula.text.refusals import is_refusal
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
        texts = self.texts
        return next((k for k in range(1, len(texts)) if texts[k] == texts[k - 1]), None)


class Marian:
    """Two Marian models with transformers, as in the paper: by hub name or folder."""

    n_parallel = 8
    """The best number of texts per call."""

    def __init__(self, there: str = _MARIAN[0], back: str = _MARIAN[1]) -> None:
        missing = (
            "Marian needs torch, transformers and sentencepiece; run: pip install torch "
            "transformers sentencepiece"
        )
        self._torch = needing("torch", missing, ModelError)
        transformers = needing("transformers", missing, ModelError)
        self._models: list[tuple[Any, Any]] = []
        for name in (there, back):
            try:
                model: Any = transformers.MarianMTModel.from_pretrained(name)
                model.eval()
                tokenizer = transformers.MarianTokenizer.from_pretrained(name)
                self._models.append((tokenizer, model))
            except (OSError, ValueError) as error:
                raise ModelError(
                    f"cannot load the Marian model {name} ({str(error).splitlines()[0]}); use a "
                    "folder that contains it"
                ) from error
        self.name = f"marian({Path(there).name},{Path(back).name})"

    def round_trip(self, texts: Sequence[str]) -> list[tuple[str, str]]:
        """Each text in the other language, and back again. Raises `ModelError`."""
        there = [self._translate(text, 0) for text in texts]
        return [(text, self._translate(text, 1)) for text in there]

    def _translate(self, text: str, k: int) -> str:
        # One text at a time: padding must not influence the output.
        tokenizer, model = self._models[k]
        tokens = tokenizer([encodable(text)], return_tensors="pt", truncation=False)
        with self._torch.no_grad():
            output = model.generate(**tokens, num_beams=4, do_sample=False)
        return str(tokenizer.decode(output[0], skip_special_tokens=True))


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
        for k, pair in zip(going, translator.round_trip(before), strict=True):
            if isinstance(pair, str):
                ended[k] = {"refused_round": number, "reason": pair}
            elif is_degenerate(texts[k], pair[1]):
                ended[k] = {"degenerate_round": number}
            elif foreign := foreign_words(texts[k], pair[1]):
                ended[k] = {"foreign_round": number, "foreign_words": tuple(foreign)}
            else:
                kept[k].append(pair[1])
    return [Rounds(tuple(rounds), **ended.get(k, {})) for k, rounds in enumerate(kept)]


def is_degenerate(original: str, text: str) -> bool:
    """Whether a translation degenerated: empty, twice or half as long, or repetitive.

    It is repetitive if a run of four words occurs three times more often than in the original.
    """
    words = TextSettings()
    old, new = words.words(original), words.words(text)
    if not new or not len(old) / _MAX_GROWTH <= len(new) <= _MAX_GROWTH * len(old):
        return True
    before, after = (Counter(zip(w, w[1:], w[2:], w[3:], strict=False)) for w in (old, new))
    return any(n - before[gram] >= _MAX_REPEATS for gram, n in after.items())


def foreign_words(original: str, text: str) -> list[str]:
    """The words of a text that are neither in its original nor English, in order.

    A word is English if wordfreq's English list has it (at least ten times per billion words) and,
    unless it is common, no other language's list has it a hundred times as often. Words of the
    original, including names, never count. In the 986 seed stories, checked as translations of an
    empty text, 26 of 48,309 words count, most of them misspelt. Raises `ModelError` if wordfreq is
    not installed.
    """
    known = {word.lower() for word in _WORD.findall(original)}
    new = dict.fromkeys(word for word in _WORD.findall(text) if word.lower() not in known)
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
    missing = "this needs wordfreq; run: pip install 'fabula[nlp]'"
    return needing("wordfreq", missing, ModelError).zipf_frequency  # type: ignore[no-any-return]


def best_offline_translator() -> str | None:
    """`marian` if its models are on this machine, else None."""
    if all(map(importlib.util.find_spec, ("torch", "transformers", "huggingface_hub"))):
        from huggingface_hub import try_to_load_from_cache

        files = (try_to_load_from_cache(name, "config.json") for name in _MARIAN)
        if all(isinstance(file, str) for file in files):
            return "marian"
    return None


def is_model(spec: str) -> bool:
    """Whether a translator is a language model, as named for `open_model`."""
    if spec.partition(":")[0] == "marian":
        return False
    is_file = spec.lower().endswith(".gguf")
    return spec == "local" or "/" in spec or spec.startswith("replay:") or is_file


def open_translator(
    spec: str, options: ModelOptions | None = None
) -> AbstractContextManager[Translator]:
    """Open `marian` (optionally with `:THERE,BACK`), or a language model.

    Models are named as for `open_model`. Use the result in `with`. `options` are the model options.
    Raises `InputError`, `ModelError`.
    """
    kind, _, pair = spec.partition(":")
    both = tuple(pair.split(",")) if pair else ()
    if kind == "marian" and len(both) in (0, 2):
        return nullcontext(Marian(*both))
    if not is_model(spec):
        raise InputError(
            f"`translator` {spec}: must be marian (optionally with :THERE,BACK) or a model: "
            "local, a path to a .gguf file, a URL, or provider/model"
        )
    from fabula.models.model_spec import open_model

    return ModelTranslator(open_model(spec, options))


_OWN, _OTHER = "English", "German"
_INSTRUCTION = (
    "Translate the story below from {source} into {target}. Translate every sentence, in its "
    "order, and keep the paragraphs as they are. Write only the translation: no title, no notes, "
    "no word before or after it.\n\nThe story:\n\n"
)
_END = "\n\nIts translation into {target}:"


class ModelTranslator(HeldOpen):
    """Any language model, asked at temperature 0; use it as a context manager.

    The signature's `name` ends with a digest of the model, the languages and the prompt's wording.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.n_parallel = model.n_parallel

    @property
    def name(self) -> str:
        return self.signed(_OWN, _OTHER, _INSTRUCTION, _END, label=f",{_OTHER}")

    def round_trip(self, texts: Sequence[str]) -> list[tuple[str, str] | str]:
        """Each text in German, and back again; or why it has no translation."""
        calls = [partial(self._there_and_back, text) for text in texts]
        return self.run_all(calls, "a translation", "translations")

    async def _there_and_back(self, text: str) -> tuple[str, str] | str:
        both = []
        for source, target in ((_OWN, _OTHER), (_OTHER, _OWN)):
            # Enough for a translation of twice the length, at four letters per token.
            sampling = Sampling(max_tokens=256 + len(text.encode(errors="replace")) // 2)
            answer = await self._model.ask(translation_prompt(text, source, target), sampling)
            reason = why_no_text(answer)
            # A translation of a story that reads like a refusal reads like one too.
            if reason == "refused" and is_refusal(text):
                reason = None
            # The story may begin with a title of its own.
            translation, _ = unframed(answer.text, has_title=True)
            if reason or not translation:
                return f"into {target}: {explain(reason or 'no_answer')}"
            if answer.stop == "length":
                return f"into {target}: the answer was cut off at {sampling.max_tokens} tokens"
            # Whitespace around a text is kept, whatever the model returns.
            before, after = re.match(r"\s*", text), re.search(r"\s*\Z", text)
            text = (before[0] if before else "") + translation + (after[0] if after else "")
            both.append(text)
        return both[0], both[1]


Translator = Marian | ModelTranslator


def translation_prompt(text: str, source: str, target: str) -> Prompt:
    """The prompt for one text in one direction."""
    names = {"source": source, "target": target}
    return Prompt(_INSTRUCTION.format(**names), text.strip() + _END.format(**names))


def estimate_round_trips(texts: Sequence[str], rounds: int, price: Price | None) -> Estimate:
    """The maximum cost of translating the texts there and back, `rounds` times each."""
    frame = estimate_tokens(translation_prompt("", _OWN, _OTHER).text)
    n_tokens = sum(estimate_tokens(text) for text in texts)
    n_calls = 2 * rounds * len(texts)
    usage = Usage(2 * rounds * n_tokens + n_calls * frame, 0, 2 * rounds * n_tokens)
    return Estimate.of(n_calls, usage, price, is_most=True)
