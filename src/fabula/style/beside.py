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
_POSSESSIVE = "his|her|my|their|our|your"
_MISSING = (
    # "The heel her hand", "instead his coat", "a number times", "a cup tea", "a favourite hers",
    # "some them", "in middle of", "on bottom step", "members the public", "a drawer full odd
    # laces", "such good man", "for long time", "had lot of".
    r"(?<!\bin\s)(?<!\bat\s)(?<!\bby\s)(?<!\bfrom\s)(?<!\bon\s)(?<!\bto\s)the (?:back|beginning|"
    "bottom|centre|center|colou?r|corners?|cost|death|depth|edges?|end|handle|head|heel|idea|length|"
    "memory|middle|mouth|name|number|owner|palm|price|rest|shape|sides?|sight|size|smell|sole|"
    "surface|taste|thought|tip|top|warmth|weight) "
    rf"(?:{_POSSESSIVE}|the) [a-z]+(?=[.,;!?])",
    rf"(?:inches|feet|yards|miles|instead|spite|fond) (?:{_POSSESSIVE}) [a-z]+(?=[.;!?])",
    "a (?:[a-z]+ )?(?:number|pair|lot|wealth|series|handful) (?:books|boots|days|friends|glasses|"
    "gloves|hours|letters|men|minutes|months|people|questions|shoes|stories|things|times|trousers|"
    "weeks|women|words|years)",
    "a (?:bottle|cup|glass|mug|pot) (?:beer|coffee|gin|juice|milk|soup|tea|water|whisky|wine)"
    r"(?=[.,;!?]| (?:and|at|for|from|in|on|to|with) )",
    "a (?:bag|bit|bunch|crowd|group|loaf|piece|pile|row|sheet|slice|stack) (?:books|boys|bread|"
    "cake|children|flowers|girls|houses|keys|men|paper|people|toast|trees|women)",
    "a (?:close |good |great |old |particular )?(?:colleague|cousin|favou?rite|friend|neighbou?r|"
    "pupil) (?:his|hers|mine|ours|theirs|yours)",
    "(?:both|many|most|none|one|some|two|three) (?:them|us)(?=[.,;!?])",
    "(?:at|in|into|from|on) (?:beginning|bottom|centre|center|middle|(?:far|other) (?:end|side)) "
    "of",
    "on (?:bottom|far|other|same|top) (?:day|end|hand|shelf|side|stair|step)",
    "members (?:the|his|her) (?:audience|board|choir|church|club|crew|family|jury|public|staff|"
    "team)",
    "(?:bag|basket|box|cup|drawer|glass|jar|pocket|room|shelf|street) full (?:broken|cold|dead|"
    "dirty|dry|empty|hot|little|new|odd|old|small|wet) [a-z]+",
    "such (?:bad|beautiful|good|lovely|nice|small|strange|terrible) (?:boy|day|girl|idea|man|place|"
    "story|thing|way|woman)",
    "(?:after|for|quite|such) (?:long|short|very long) (?:time|while|way)",
    "(?:ate|drank|had|have|made|spent|take|took|was|with) (?:bit|couple|cup|glass|handful|lot|"
    "number|piece) of",
)
_MISSING_IN_SPEECH = (
    # "For her speak", "that they going", "when got home", "and it odd", "if you a man", "listen
    # me", "go the village", "Ann and him went", "one the men", "it was good idea".
    "(?:allowed|asked|expected|for|forced|ordered|persuaded|told|wanted) (?:him|her|me|them|us) "
    "(?:be|become|bring|come|eat|get|give|sit|speak|tell)"
    "(?= (?:a|an|it|on|out|the|them|to|up|with)|[.,;!?])",
    rf"(?P<bare>(?:after|because|before|how|if|since|that|until|when|while|why) {_PRONOUN} "
    rf"(?!being){_ING}|(?<=[.!?]\s)(?:He|She|They|We|It|I) (?:not )?(?!being){_ING} "
    "(?:a|at|down|for|her|his|in|on|out|the|to|up))",
    "and it (?:bad|clear|dark|good|hard|impossible|late|nice|odd|possible|raining|strange|true)",
    "(?:as soon as|until|when) (?:arrived|got|sat|saw|went|woke)",
    "(?:because|if|that|when|whether) (?:he|she|they|we|you) (?:a|an)",
    "listen(?:ed|ing)? (?:her|him|me|them|us)",
    "(?:to go|going|(?:came|come|go|gone|went) back|hurried) (?:the|her|his|my|their) (?:bedroom|"
    "church|garden|hospital|hotel|house|kitchen|library|market|office|party|school|shop|station|"
    "table|village|window)",
    r"(?<!\bbetween\s)(?<!\bfor\s)(?<!\bfrom\s)(?<!\bof\s)(?<!\bto\s)(?<!\bwith\s)[A-Z][a-z]+ and "
    rf"(?:him|them) (?:{_ED}|{_ONLY_PAST}|sat|stood|were|had|are)",
    r"(?<!\bby\s)(?<!\bto\s)one the [a-z]+s",
    "(?:be|been|is|was) (?:beautiful|big|good|great|long|nice|old|short|small|strange|very good|"
    "young) (?:boy|day|dog|girl|house|idea|man|place|story|thing|town|woman)(?! [A-Z])",
)
_MISFITS = (
    *_MISSING,
    rf"{_MODAL} {_ADVERB}(?:{_ING}|had|has|(?<!['’]t\s)(?:was|were|is|are|am))",
    rf"{_MODAL} (?:able|afraid|angry|ashamed|careful|glad|happy|impossible|possible|proud|ready|"
    "sorry|sure)",
    rf"did(?: not|n['’]t) {_ADVERB}(?:{_PAST}|{_ED}|was|were|had)",
    rf"(?:had|has|have|\w+['’](?:s|d|ve)) (?:not|never) (?:{_ONLY_PAST})(?!\s?[.,;:!?])",
    rf"(?:{_WITH_TO}) to (?:{_PAST}|felt|left|thought|understood|{_ED})",
    rf"(?<!\bought\s)to (?:{_PAST}|(?:ask|climb|explain|follow|happen|help|listen|look|play|reach|"
    "remember|stay|talk|visit|wait|walk|want)ed)",
    r"(?:(?<=[.!?,;]\s)|(?<=[.!?][”\"’]\s)|(?<=\band\s)|(?<=\bbut\s)|(?<=\bthen\s))"
    rf"(?:(?:{_PRONOUN} )?(?:[a-z]+ly )?{_ED}|{_PRONOUN} (?!did)(?:{_ONLY_PAST}|rose|sat|stood)) "
    rf"(?:{_ONLY_PAST}|caught|got|kept|let|said|sat|stood|told)",
    r"(?P<stem>[a-z]{3,})(?:ed|s|ing) (?P=stem)(?:ed|ing)",
    "(?:asked|knew|know|talk|talked|talking|think|thinking|thought|told|worried) about of",
    "(?:had|has|have) being",
    rf"(?:{_PRONOUN}|who) (?:had|has|have) (?:{_BASE})"
    "(?= (?:the|a|an|his|her|him|it|them|me|my|us|our|their|your|you) )",
    rf"{_PRONOUN} (?:had|has|have) (?:be|do|find|give|go|keep|know|make|see|tell|think|write)"
    "(?! (?:a|of|the))",
    "(?:had|has|have) rose (?:again|to|up)",
    "been (?:break|choose|do|eat|find|forget|give|go|hide|know|make|say|speak|steal|take|tell|"
    "throw|wear|write)",
    "had (?:stop|start|begin|keep|finish) [a-z]+ing",
    rf"(?P<first>{_DETERMINER}) (?!(?P=first)\b)"
    "(?:an|the|my|our|their|your|his|its)(?= [a-z]{2})",
    rf"(?!a (?:and|to) )(?:{_DETERMINER}) (?:of|to|at|for|with|from|and|but|was|were|is|are|had|"
    "has|would|could)(?! (?:first|last|least|once))",
    rf"(?P<told>{_MODAL} {_ADVERB}(?:{_PAST}|{_DONE}|{_ED}|been)|"
    rf"(?:is|was|were|are|be|been|being) (?!did)(?:{_ONLY_PAST})|{'|'.join(_MISSING_IN_SPEECH)})",
)
MISFIT = re.compile(rf"(?<![\w'’‑-])(?:{'|'.join(_MISFITS)})(?![\w’'-])".replace(" ", r"\s+"))
"""In speech, what is `told` may be dialect: "he was took aback". In a story too, what is `bare` may
be: "they going home"."""
