"""Present tense of English verbs, from their past forms."""

from __future__ import annotations

import re

__all__ = ["base_of_past", "third_person"]

# Past and base, for verbs whose past does not end in -ed or is shared by two verbs.
_PAIRS = """
arose arise|bathed bathe|breathed breathe|clothed clothe|loathed loathe|seethed seethe|
sheathed sheathe|soothed soothe|writhed writhe|
ate eat|awoke awake|became become|began begin|beheld behold|bent bend|bit bite|
bled bleed|blew blow|bore bear|bought buy|bound bind|bred breed|broke break|brought bring|
built build|burnt burn|came come|caught catch|chose choose|clung cling|crept creep|dealt deal|
did do|dove dive|drank drink|dreamt dream|drew draw|drove drive|dug dig|dwelt dwell|fed feed|
fell fall|felt feel|fled flee|flew fly|flung fling|forbade forbid|forgave forgive|forgot forget|
fought fight|found find|froze freeze|gave give|got get|grew grow|ground grind|had have|heard hear|
held hold|hid hide|hung hang|kept keep|knelt kneel|knew know|laid lay|lay lie|leant lean|
leapt leap|learnt learn|led lead|left leave|lent lend|lit light|lost lose|made make|meant mean|
met meet|mistook mistake|misunderstood misunderstand|outgrew outgrow|overcame overcome|
overheard overhear|overtook overtake|paid pay|pled plead|ran run|rang ring|rebuilt rebuild|
retold retell|rode ride|rose rise|said say|sang sing|sank sink|sat sit|saw see|sent send|
shone shine|shook shake|shot shoot|shrank shrink|slept sleep|slid slide|slung sling|slunk slink|
smelt smell|sold sell|sought seek|spat spit|sped speed|spent spend|spilt spill|
spoke speak|sprang spring|spun spin|stank stink|stole steal|stood stand|strode stride|
strove strive|struck strike|stuck stick|stung sting|swam swim|swelled swell|swept sweep|
swore swear|swung swing|taught teach|thought think|threw throw|told tell|took take|tore tear|
trod tread|understood understand|undertook undertake|unwound unwind|upheld uphold|wept weep|
went go|withdrew withdraw|withstood withstand|woke wake|won win|wore wear|wound wind|wove weave|
wrote write|wrung wring|foresaw foresee|misled mislead|oversaw oversee|remade remake|repaid repay|
slew slay|spelt spell|spoilt spoil|strung string|underwent undergo|withheld withhold
"""
_IRREGULAR = dict(pair.split() for pair in _PAIRS.replace("\n", "").split("|"))
_UNCHANGED = (
    "bet burst cast cost cut hit hurt let put quit rid set shed shut slit split spread thrust upset"
)
_SAME = frozenset(_UNCHANGED.split())
_IN_O = "do echo embargo forgo go outdo overdo redo torpedo undergo undo veto"
_OES = frozenset(_IN_O.split())


def base_of_past(past: str, lemma: str) -> str | None:
    """The base of a past form in lower case; None if it is not certain.

    `lemma` is a guess, accepted only if inflecting it gives the past form back.
    """
    if past in _IRREGULAR:
        return _IRREGULAR[past]
    if past in _SAME:
        return past
    return lemma if past in _regular_pasts(lemma) else None


def _regular_pasts(base: str) -> set[str]:
    if re.search(r"[^aeiou]y$", base):
        return {base[:-1] + "ied"}
    if base.endswith("e"):
        return {base + "d"}
    if base.endswith("c"):
        return {base + "ked"}
    # A short vowel and one consonant: doubling is certain only in words of one syllable.
    if re.fullmatch(r"[^aeiou]*(?:qu)?[aeiou][^aeiouwxyh]", base):
        return {base + base[-1] + "ed"}
    if re.search(r"[aeiou][^aeiouwxyh]$", base):
        return {base + "ed", base + base[-1] + "ed"}
    return {base + "ed"} if base.isalpha() and len(base) > 1 else set()


def third_person(base: str) -> str:
    """The third person singular of the present: `go` gives `goes`."""
    special = {"be": "is", "have": "has", "stomach": "stomachs", "quiz": "quizzes"}
    if base in special:
        return special[base]
    if base in _OES or base.endswith(("s", "x", "z", "ch", "sh")):
        return base + "es"
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ies"
    return base + "s"
