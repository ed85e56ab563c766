"""Penn Treebank tokens as normal text, and the published files of the Children's Book Test.

Hill et al. 2016 (arXiv 1511.02301); the files are recognised by their content, and both kinds are
such tokens. An item file (`cbtest_CN_test_2500ex.txt`) has 21 numbered lines per item, the last
with XXXXX for a word, a tab, the word, and candidates separated by bars. A book file
(`cbt_test.txt`) has a line `_BOOK_TITLE_ : NAME` and one sentence per line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fabula.core.errors import InputError
from fabula.core.types import Document

_N_LINES = 21
_ITEM = re.compile(r"\s*1 [^\n]*\n\s*(?:\d+ [^\n]*\n\s*){19}21 [^\n]*XXXXX[^\n]*\t[^\n]*\|")
_BOOK = re.compile(r"\s*_BOOK_TITLE_ :")
_LINE = re.compile(r"(\d+) (.*\S)\s*")
_SHOWN = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "``": '"', "`": "'", "''": '"',
}  # fmt: skip
# Tokens that the next one follows without a space, and those that follow the one before so.
_OPENS = frozenset("([{$£#") | {"-LRB-", "-LSB-", "-LCB-", "``", "`", "--"}
_CLOSES = frozenset(")]},.;:!?%") | {"-RRB-", "-RSB-", "-RCB-", "...", "''", "'", "--"}
_CLITIC = re.compile(r"(?:n't|'(?:s|m|d|re|ve|ll))$", re.IGNORECASE)
# Words that the tokeniser splits, by their halves.
_HALVES = {
    ("can", "not"): "cannot", ("gon", "na"): "gonna", ("got", "ta"): "gotta",
    ("lem", "me"): "lemme", ("gim", "me"): "gimme", ("wan", "na"): "wanna", ("'t", "is"): "'tis",
    ("'t", "was"): "'twas", ("d'", "ye"): "d'ye", ("more", "'n"): "more'n",
}  # fmt: skip


def detokenise(tokens: Sequence[str]) -> str:
    """The sentence with these tokens: quotes attached to their words, contractions joined.

    A grave accent opens a single quotation; a lone `'` closes one or marks a possessive, and
    follows its word either way. Double quotes become straight ones; `--` joins its words.
    """
    parts: list[str] = []
    glue = True
    is_open = False
    whole: list[str] = []
    for token in tokens:
        # Split words are rejoined, and capitals kept.
        last = whole[-1] if whole else ""
        if (word := _HALVES.get((last.lower(), token.lower()))) is None:
            whole.append(token)
            continue
        first = int(word.startswith("'"))
        is_capital = (last + token).lstrip("'")[:1].isupper()
        begin = word[first : first + 1].upper() if is_capital else word[first : first + 1]
        whole[-1] = word[:first] + begin + word[first + 1 :]
    for k, token in enumerate(whole):
        if token == "'":
            # It opens a quotation after all if none is open, it follows a comma, a colon or
            # nothing, and a capital follows: `said he , ' I know`.
            before = [token for token in whole[:k] if token in ("`", "'")]
            is_closed = not before or before[-1] == "'"
            is_capital = "".join(whole[k + 1 : k + 2])[:1].isupper()
            if is_closed and is_capital and (k == 0 or whole[k - 1] in (",", ":", ";", "--")):
                token = "`"
        if token == '"':
            # A straight quote opens and closes alternately.
            token = "''" if is_open else "``"
            is_open = not is_open
        sticks = token in _CLOSES or _CLITIC.fullmatch(token)
        parts.append(("" if glue or sticks else " ") + _SHOWN.get(token, token))
        glue = token in _OPENS
    return "".join(parts)


def cbt_documents(text: str, name: str, stem: str) -> Iterator[Document] | None:
    """A document for each item or book of such a file; None if the text is something else.

    `meta["sentences"]` are the tokens; for an item (`meta["cbt_item"]`, counted from 1) they are
    its context and the last sentence with the answer filled in, without numbers and candidates.
    Raises `InputError` at an item that is damaged.
    """
    if _ITEM.match(text):
        return _items(text, name, stem)
    if _BOOK.match(text):
        books = cbt_books(text)
        return (_document(title, sentences, {"title": title}) for title, sentences in books)
    return None


def cbt_books(text: str) -> Iterator[tuple[str, list[str]]]:
    """The title and sentences of each book in a book file."""
    for part in re.split(r"^_BOOK_TITLE_ :", text, flags=re.MULTILINE)[1:]:
        title, _, rest = part.partition("\n")
        yield title.strip().removesuffix(".txt.out"), [line for line in rest.splitlines() if line]


def _items(text: str, name: str, stem: str) -> Iterator[Document]:
    sentences: list[str] = []
    n_items = line_number = 0
    for line_number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where, expected = f"{name}, line {line_number}", len(sentences) + 1
        match = _LINE.fullmatch(line)
        if match is None or int(match[1]) != expected:
            raise InputError(
                f"{where}: does not begin with {expected}, as the next line of a Children's Book "
                "Test item should; restore the item, or remove it"
            )
        sentence = match[2]
        if expected == _N_LINES:
            # The answer is filled in on the last line.
            sentence, *rest = sentence.split("\t")
            answer = rest[0].strip() if rest else ""
            if "XXXXX" not in sentence or not answer:
                raise InputError(
                    f"{where}: the question of a Children's Book Test item needs XXXXX, a tab and "
                    "the answer; restore the item, or remove it"
                )
            sentence = sentence.replace("XXXXX", answer)
        sentences.append(sentence)
        if expected == _N_LINES:
            n_items += 1
            meta = {"title": f"Children's Book Test, item {n_items}", "cbt_item": n_items}
            yield _document(f"{stem}:item-{n_items}", sentences, meta)
            sentences = []
    if sentences:
        raise InputError(
            f"{name}, line {line_number}: the last item of the Children's Book Test has "
            f"{len(sentences)} of {_N_LINES} lines; add the others, or remove it"
        )


def _document(name: str, sentences: Sequence[str], meta: dict[str, object]) -> Document:
    text = " ".join(detokenise(sentence.split()) for sentence in sentences)
    return Document(id=name, text=text, meta={**meta, "sentences": list(sentences)})
