"""Words that cannot stand beside each other: "did not went", "would been", "had wipe the glass".

Tables of forms take the place of a parser, and leave alone what may be another word (*found*,
*saw*, *left*).
"""

from __future__ import annotations

import re

PARTICIPLES = {
    "ate": "eaten", "became": "become", "began": "begun", "blew": "blown", "broke": "broken",
    "came": "come", "chose": "chosen", "did": "done", "drank": "drunk", "drew": "drawn",
    "drove": "driven", "flew": "flown", "froze": "frozen", "gave": "given", "grew": "grown",
    "knew": "known", "ran": "run", "rang": "rung", "rode": "ridden", "rose": "risen",
    "sang": "sung", "sank": "sunk", "saw": "seen", "shook": "shaken", "shrank": "shrunk",
    "spoke": "spoken", "sprang": "sprung", "stank": "stunk", "stole": "stolen", "swam": "swum",
    "threw": "thrown", "took": "taken", "tore": "torn", "went": "gone", "wore": "worn",
    "wrote": "written",
}  # fmt: skip
"""Of pasts that differ from their participles."""
_AMBIGUOUS = ("rose", "saw")
_ONLY_PAST = "|".join(past for past in PARTICIPLES if past not in _AMBIGUOUS)
_PAST = (
    rf"{_ONLY_PAST}|bought|brought|caught|got|heard|held|kept|lost|met|paid|said|sat|sent|slept|"
    "stood|taught|told|won"
)
_DONE = "|".join(done for done in PARTICIPLES.values() if done not in ("become", "come", "run"))
_ED = r"(?!\w*eed\b|(?:em)?bed\b|wed\b|shr?ed\b|sled\b|hundred|sacred|beloved)[a-z]{2,}ed"
_ING = (
    r"(?!(?:any|every|no|some)?thing|bring|s?p?ring|wring|s?wing|string|sl?ing|sting|fling|cling|"
    r"ding|evening|morning|writing|blooming)[a-z]+ing"
)
_BASE = (
    "ask|begin|bend|bring|buy|call|carry|choose|climb|close|creep|cross|decide|draw|drop|eat|enter|"
    "explain|fill|finish|follow|forget|get|give|go|grow|happen|hear|hide|kill|know|learn|lift|"
    "listen|look|lose|make|meet|move|notice|open|pay|pick|pull|push|reach|remember|ride|see|sell|"
    "send|shake|show|sing|sit|sleep|speak|spend|start|stop|swear|take|teach|tell|think|throw|touch|"
    "try|turn|understand|wait|walk|want|wash|watch|wear|win|wipe|wish|write"
)
_PRONOUN = "(?i:I|you|he|she|it|we|they)"
_MODAL = (
    r"(?<!\ba\s)(?<!\bthe\s)(?<!\bhis\s)(?<!\bher\s)(?<!\btheir\s)(?:would|could|should|might|must|"
    r"cannot|(?:would|could|should|might|must|ca|wo)n['’]t|"
    rf"{_PRONOUN} (?:can|will))"
)
_ADVERB = "(?:(?:not|never|just|also|still|even|always|only|then|now|really) )?"
_WITH_TO = (
    "had|have|has|used|need|needed|want|wanted|going|able|began|begun|managed|seemed|started|tried|"
    "trying"
)
_DETERMINER = "a|an|the|my|our|their|your"
_MISFITS = (
    rf"{_MODAL} {_ADVERB}(?:{_ING}|had|has|(?<!['’]t\s)(?:was|were|is|are|am))",
    rf"{_MODAL} (?:able|afraid|angry|ashamed|careful|glad|happy|impossible|possible|proud|ready|"
    "sorry|sure)",
    rf"did(?: not|n['’]t) {_ADVERB}(?:{_PAST}|{_ED}|was|were|had)",
    rf"(?:had|has|have|\w+['’](?:s|d|ve)) (?:not|never) (?:{_ONLY_PAST})(?!\s?[.,;:!?])",
    rf"(?:{_WITH_TO}) to (?:{_PAST}|felt|left|thought|understood|{_ED})",
    rf"(?<!\bought\s)to (?:{_PAST})",
    r"(?:(?<=[.!?,;]\s)|(?<=[.!?][”\"’]\s)|(?<=\band\s)|(?<=\bbut\s)|(?<=\bthen\s))"
    rf"(?:(?:{_PRONOUN} )?(?:[a-z]+ly )?{_ED}|{_PRONOUN} (?!did)(?:{_ONLY_PAST}|rose|sat|stood)) "
    rf"(?:{_ONLY_PAST}|caught|got|kept|let|said|sat|stood|told)",
    r"(?P<stem>[a-z]{3,})(?:ed|s|ing) (?P=stem)(?:ed|ing)",
    "(?:asked|knew|know|talk|talked|talking|think|thinking|thought|told|worried) about of",
    "(?:had|has|have) being",
    rf"(?:{_PRONOUN}|who) (?:had|has|have) (?:{_BASE})"
    "(?= (?:the|a|an|his|her|him|it|them|me|my|us|our|their|your|you) )",
    "had (?:stop|start|begin|keep|finish) [a-z]+ing",
    rf"(?P<first>{_DETERMINER}) (?!(?P=first)\b)"
    "(?:an|the|my|our|their|your|his|its)(?= [a-z]{2})",
    rf"(?!a (?:and|to) )(?:{_DETERMINER}) (?:of|to|at|for|with|from|and|but|was|were|is|are|had|"
    "has|would|could)(?! (?:first|last|least|once))",
    rf"(?P<told>{_MODAL} {_ADVERB}(?:{_PAST}|{_DONE}|{_ED}|been)|"
    rf"(?:is|was|were|are|be|been|being) (?!did)(?:{_ONLY_PAST}))",
)
MISFIT = re.compile(rf"(?<![\w'’‑-])(?:{'|'.join(_MISFITS)})(?![\w’'-])".replace(" ", r"\s+"))
"""In speech, what is `told` may be dialect: "he was took aback", "it wouldn’t been any harm"."""
