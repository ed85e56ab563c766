"""Whether a text is English, as the English pipeline, word lists and models require.

A naive Bayes classifier over bytes distinguishes 138 languages (py3langid, after Lui and Baldwin
2012, "langid.py"). It is used for one decision only: whether another language is clearly more
probable than English. Undecided texts count as English, so dialect, old spelling, lists of names
and very short texts are measured; the price is that a text in a language close to English passes.

- A text is split at blank lines, and paragraphs are joined until they have 20 words.
- A part is English if at least 12% of its words are function words that only English has. This
  decides nine of ten parts of English fiction. The classifier, which takes half a second to open,
  is asked only where such parts are not half of a text.
- Another part is foreign if less than half of its letters are Latin, or if it has five distinct
  words or more and another language is over 20 times (3 nats) as probable as English. Nigerian
  Pidgin and text in no language at all count as English here.
- A text is foreign if its foreign parts have more than half of its letters; it is reported as the
  language with most of these.
"""

from __future__ import annotations

import functools
import importlib.metadata
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Any

from fabula.cached_results import Kept, Memo
from fabula.text.sentences import encodable, paragraphs_of

_PART_WORDS = 20
_MIN_DIFFERENT = 5
_MARGIN_NATS = 3.0
_BATCH = 64
_REMEMBERED_CHARS = 1 << 21
_MIN_SHARE = 0.12
"""English fiction has 20%, and 90% of its parts this much; Dutch, German, Danish and Norwegian have
almost none."""
# Left out: `was`, `of`, `over`, `had`, `her`, `for` (Dutch, German, Danish, Norwegian), `have`
# (Danish), `my` (Afrikaans).
_ONLY_ENGLISH = frozenset(
    re.findall(
        r"\w+",
        "the and his with she you which from they were this would there their what when them said "
        "could into your than then about down back through where again out that",
    )
)
# What English in dialect, in tokens or in numbers may be mistaken for.
_ENGLISH = frozenset(("en", "pcm", "zxx"))
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
# Languages by their ISO 639 codes, as the identifier names them.
_NAMES: dict[str, str] = dict(
    re.findall(
        r"(\w+):(\w+)",
        "ace:Acehnese af:Afrikaans am:Amharic an:Aragonese ar:Arabic ary:Moroccan_Arabic "
        "arz:Egyptian_Arabic as:Assamese az:Azerbaijani ba:Bashkir bcl:Bikol be:Belarusian "
        "bg:Bulgarian bn:Bengali br:Breton bs:Bosnian ca:Catalan crh:Crimean_Tatar cs:Czech "
        "cy:Welsh da:Danish de:German dz:Dzongkha el:Greek eo:Esperanto es:Spanish et:Estonian "
        "eu:Basque ext:Extremaduran fa:Persian fi:Finnish fo:Faroese fr:French fuv:Fulfulde "
        "fy:Frisian ga:Irish gcf:Guadeloupean_Creole gcr:Guianese_Creole gd:Scottish_Gaelic "
        "gl:Galician gom:Konkani grc:Ancient_Greek gu:Gujarati gug:Guarani guw:Gun ha:Hausa "
        "hbo:Biblical_Hebrew he:Hebrew hi:Hindi hr:Croatian ht:Haitian_Creole hu:Hungarian "
        "hy:Armenian id:Indonesian ig:Igbo is:Icelandic it:Italian ja:Japanese jv:Javanese "
        "ka:Georgian kab:Kabyle kik:Kikuyu kk:Kazakh km:Khmer kn:Kannada ko:Korean ku:Kurdish "
        "ky:Kyrgyz la:Latin lb:Luxembourgish lg:Ganda lij:Ligurian ln:Lingala lo:Lao "
        "lt:Lithuanian ltg:Latgalian lv:Latvian mg:Malagasy mk:Macedonian ml:Malayalam "
        "mn:Mongolian mr:Marathi ms:Malay mt:Maltese my:Burmese ne:Nepali nl:Dutch "
        "nn:Norwegian_Nynorsk no:Norwegian nso:Northern_Sotho oc:Occitan om:Oromo or:Odia "
        "pa:Punjabi pl:Polish ps:Pashto pt:Portuguese qu:Quechua ro:Romanian ru:Russian "
        "rw:Kinyarwanda sa:Sanskrit sdh:Southern_Kurdish se:Northern_Sami si:Sinhala sk:Slovak "
        "sl:Slovene sn:Shona so:Somali sq:Albanian sr:Serbian st:Southern_Sotho sv:Swedish "
        "sw:Swahili ta:Tamil te:Telugu tg:Tajik th:Thai tk:Turkmen tl:Tagalog tr:Turkish "
        "tt:Tatar ug:Uyghur uk:Ukrainian ur:Urdu uz:Uzbek uzs:Southern_Uzbek vec:Venetian "
        "vi:Vietnamese vo:Volapük wa:Walloon wuu:Wu_Chinese xh:Xhosa yo:Yoruba yue:Cantonese "
        "zh:Chinese zu:Zulu",
    )
)


def language_gate() -> str:
    """What decides whether a text is English, for signatures: the classifier and its limits, and
    the share of words like `the` that decides without it."""
    version = importlib.metadata.version("py3langid")
    return f"py3langid-{version},{_PART_WORDS}words,{_MARGIN_NATS:g}nats,or-{_MIN_SHARE:g}-the"


@functools.lru_cache(8)
def not_english(text: str) -> str | None:
    """Why an English instrument skips a text: `not English: looks like Finnish`.

    None if it is English or undecided.
    """
    every = [(part, sum(map(str.isalpha, part))) for part in _parts(encodable(text))]
    parts = [(part, n) for part, n in every if not _has_english_words(part)]
    n_all, n_unsure = (sum(n for _, n in some) for some in (every, parts))
    n_sure = n_all - n_unsure
    if 2 * n_sure >= n_all:
        return None
    memo = _languages()
    # Of the next draft of a text, enough parts are known: the identifier need not be opened.
    known = memo.known(dict.fromkeys(part for part, _ in parts))
    n_known = sum(n for part, n in parts if part in known and known[part] is None)
    if 2 * (n_sure + n_known) >= n_all:
        return None
    n_letters = Counter[str | None]({None: n_sure})
    found = memo.each((part for part, _ in parts), lambda new: map(_foreign, new), _BATCH)
    for (_, n), name in zip(parts, found, strict=True):
        n_letters[name] += n
    n_english = n_letters.pop(None, 0)
    if n_letters.total() <= n_english:
        return None
    return f"not English: looks like {max(n_letters, key=lambda name: (n_letters[name], name))}"


@functools.cache
def _languages() -> Memo[str | None]:
    """Remembers what `_foreign` returned."""
    name = f"language 1|{language_gate()}"
    kept: Kept[str | None] = Kept(
        name, lambda found: found, lambda _, found: None if found is None else str(found)
    )
    return Memo(_REMEMBERED_CHARS, kept)


def _parts(text: str) -> Iterator[str]:
    """Paragraphs, joined until they have enough words for a decision; the last may have fewer."""
    held: list[str] = []
    n_words = 0
    for paragraph in paragraphs_of(text):
        held.append(paragraph)
        n_words += len(_WORD.findall(paragraph))
        if n_words >= _PART_WORDS:
            yield "\n\n".join(held)
            held, n_words = [], 0
    if held:
        yield "\n\n".join(held)


def _has_english_words(part: str) -> bool:
    words = [word.casefold() for word in _WORD.findall(part)]
    n_english = sum(word in _ONLY_ENGLISH for word in words)
    return bool(words) and n_english >= _MIN_SHARE * len(words) and _is_latin(part)


def _foreign(part: str) -> str | None:
    """The language's name if it is clearly not English."""
    is_latin = _is_latin(part)
    if is_latin and len({word.casefold() for word in _WORD.findall(part)}) < _MIN_DIFFERENT:
        return None
    ranked: dict[str, float] = dict(_identifier().rank(part))
    english = max(ranked.pop(code, 0.0) for code in _ENGLISH)
    best = max(ranked, key=lambda code: ranked[code])
    if ranked[best] > english * math.exp(_MARGIN_NATS):
        return _NAMES.get(best, best).replace("_", " ")
    return None if is_latin else "another script"


def _is_latin(text: str) -> bool:
    """Whether at least half of the letters are Latin; a text without letters counts as Latin."""
    if text.isascii():
        return True
    letters = [character for character in text if character.isalpha()]
    n_latin = sum(unicodedata.name(character, "").startswith("LATIN") for character in letters)
    return 2 * n_latin >= len(letters)


@functools.cache
def _identifier() -> Any:
    """Loaded for the first text: a third of a second and 100 MB."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
