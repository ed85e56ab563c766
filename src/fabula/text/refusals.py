"""Detect answers in which a model refuses, instead of giving what was asked for.

A refusal speaks of the task in the model's own voice: it says that it cannot or will not write,
help, summarise, and why, and offers something else. A story may begin with the same words: spoken
by a character (between quotation marks, after a dash, with a tag), or by a narrator who then
continues. So a sentence that declines counts only outside of speech, near the beginning, and if the
answer is short or talks about requests, guidelines, "you" and "instead".
"""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"(?<=[.!?…:])[\"'”’)*_]*\s+|\n+")
_SPOKEN = re.compile(
    r"(?m)“[^”]*(?:”|\Z)|«[^»]*»|»[^«]*«|„[^“”]*[“”]|\"[^\"\n]*(?:\"|\Z)"
    r"|(?<!\w)[‘'](?=\w)[^\n]{2,400}?[,.!?…—-][’'](?!\w)"
)
_SPOKEN_BY_DASH = re.compile(r"^\s*[—–―].*$", re.MULTILINE)
_TAG = r"(?:said|says|asked|replied|answered|whispered|told|cried|muttered|thought|wrote|called)"
_WHO = r"(?:(?:the|my|his|her|their|our|old|an?) )?[\w’'-]{1,20}(?: [A-Z][\w’'-]{1,20})?"
_NARRATED = re.compile(
    rf"“”\W{{0,3}}{_WHO} {_TAG}\b|, {_WHO} {_TAG}\b|\b{_TAG} (?:I|he|she|they|the|my|[A-Z])"
    rf"|^\W*{_TAG}\b"
)
_N_FIRST = 6
"""The sentences in which a refusal comes, if any: after thanks, sympathy and a remark on the task.
"""
_SHORT = 45
_LONG = 130

_NOT = (
    r"(?:can(?:no|[’']?|\s?no)t|won[’']?t|will not|would not|wouldn[’']t"
    r"|(?:am|are|[’']m|[’']re)\s(?:not|un)\s?(?:really\s|currently\s|quite\s)?"
    r"(?:able|comfortable|going|allowed|permitted|willing|in a position|designed|equipped"
    r"|programmed|trained|built)"
    r"|don[’']t (?:feel |think )?(?:comfortable|able|it(?:[’']s| is| would be) appropriate"
    r"|i (?:can|should))|do not feel (?:comfortable|able)|should(?:n[’']t| not)"
    r"|(?:must|have to|need to|[’']ll have to|[’']d have to|am going to have to"
    r"|[’']m going to have to"
    r"|am forced to|will)?\s?(?:respectfully |politely )?(?:decline|refuse|pass on)"
    r"|(?:would |[’']d )?(?:rather|prefer) not|am prohibited|[’']m prohibited|refrain"
    r"|lack the ability|don[’']t have the ability|do not have the ability)"
)
_DO = (
    r"(?:(?:help|assist|fulfil+|comply|engage|answer|support|discuss|craft|offer|process|proceed"
    r"|review|suggest|develop|respond|expand|finish|draft|comment|draw up|work (?:on|with)|condens"
    r"|identify|(?:re)?writ|creat|generat|provid|continu|produc|summari[sz]|complet|translat|compos"
    r"|participat|evaluat|critiqu|shar|label|giv|nam|reproduc|depict|describ|explor|accommodat"
    r"|analy[sz]|determin|formulat)(?:e|ing)?|(?:do(?:ing)?|go(?:ing)? (?:along|ahead|there)"
    r"|tak(?:e|ing) (?:on|part)"
    r"|be of help|carry(?:ing)? (?:on|out)|render(?:ing)?|put (?:it|this|that) into|com(?:e|ing) up"
    r"|mak(?:e|ing) (?:up|one|an?|this|that)|turn(?:ing)? (?:this|that|it)))"
)
_DECLINES = re.compile(
    rf"\b(?:i|we)\s?(?:[’']m afraid(?: that)? i )?(?:\w+ly |just |also |simply |still )?{_NOT}"
    rf"(?:\s(?:to|in|with|from|be|able|really|\w+ly|directly))*\s*\b{_DO}\b"
    r"|^\W*(?:(?:unfortunately|so|therefore|however)\W+)?i(?:[’']ll| must| have to| need to"
    r"|[’']d have to"
    r"|(?: am|[’']m) going to(?: have to)?) (?:respectfully |politely )?(?:decline|pass)\W*$",
    re.IGNORECASE,
)
# "I cannot help it", "help but laugh", "help feeling", "give up", "go there again".
_OTHERWISE = re.compile(
    r"\b(?:help (?:but|it|myself|wondering|thinking|feeling|noticing|him|her|them|laughing|smiling)"
    r"|give (?:up|in|way|him|her|them|back)|describe (?:the|her|his|how|what it)"
    r"|answer (?:her|him|them|the|for)|finish (?:my|the|it)|go there|name (?:it|him|her|the))\b",
    re.IGNORECASE,
)
_SELF = re.compile(
    r"(?i)\b(?:as|being|i[’']?m|i am)\s(?:just |only )?an?\s(?:\w+ )?(?:ai\b|a\.i\."
    r"|artificial intelligence"
    r"|large language model|language model|virtual assistant|ai[- ]assistant)"
)
_RULES = re.compile(
    r"(?i)\b(?:against|violat\w+|conflicts? with|within|under|outside|breach\w*|not permitted by"
    r"|goes? beyond)"
    r" (?:of )?(?:my|our|the|openai[’']s|content|its)\s?(?:\w+ ){0,3}?(?:guidelines?|polic(?:y|ies)"
    r"|programming|rules for content|terms of (?:use|service))"
    r"|\b(?:my|our|the content|the safety) (?:\w+ ){0,2}?(?:guidelines?|polic(?:y|ies)"
    r"|programming|instructions)"
    r" (?:do not|don[’']t|does not|doesn[’']t|prohibits?|prevents?|forbids?|won[’']t)\b"
)
# Declining without a verb for the task.
_WITHOUT_VERB = re.compile(
    r"(?:\bnot|n[’']t) (?:a |an |the )?(?:something|anything|story|text|scene|topic|request|content"
    r"|(?:kind|sort|type) of \w+) (?:that |which )?(?:i|we)(?:[’']m|[’']re| am| are)?(?: really)?"
    r" (?:can|could|able|comfortable|do|will|willing|feel|write)\b"
    r"|\b(?:not|un)\s?(?:\w+ly )?(?:comfortable|okay|at ease) with (?:this|that|your|the|such)"
    r" (?:\w+ )?(?:request|prompt|story|plot|content|topic|scenario|premise)"
    r"|\b(?:in)?appropriate for me to|\bi (?:don[’']t|do not) have personal (?:opinions|feelings"
    r"|experiences)|\b(?:i|we)(?: must| have to| need to| will|[’']ll|[’']d have to|(?: am"
    r"|[’']m) (?:going|forced) to(?: have to)?)(?: respectfully| politely)? (?:decline|refuse"
    r"|pass on) (?:this|that|your|the) (?:request|prompt|one|task)",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"(?i)\b(?:(?:that|this|your|the|such an?|these|any) (?:\w+ ){0,2}?(?:request|prompt|task"
    r"|instruction"
    r"|question|content|material|plot|premise|topic|theme|text|passage|scenario|draft|translation"
    r"|summary|conversation|excerpt|subject(?: matter)?|type of (?:content|story|material))s?"
    r"|such (?:stories|content|texts|scenes)|help (?:here|with)|with (?:that|this"
    r"|it)\b(?! (?:man|woman|girl|boy|thing|hand|knife|house))|do (?:that|this|so)|(?:a|an|the"
    r"|this|that|your|any|such an?|one|his|her) (?:[\w’'-]+ ){0,4}?(?:story|stories"
    r"|tale|narrative|scene|poem|speech|article|proof|summary|plot|feedback|critique|translation"
    r"|label|title|continuation|fiction|sentence|name|review|theme|answer|opinion|judge?ment)"
    r"|(?:write|do|continue|create|translate|answer|assist|provide|produce) (?:this|that|it"
    r"|one)(?=\W*$)|writing (?:\w+ )?(?:stories|fiction|scenes|texts)|feedback|fiction|content"
    r"|a common (?:theme|thread))\b"
)
_OFFERS = re.compile(
    r"(?i)\b(?:instead|alternativ\w+|however,? i(?:[’']d| would| can| could)|i(?:[’']d"
    r"| would) be (?:happy|glad|willing)|(?:happy|glad) to (?:help|write|assist|offer|work|try"
    r"|suggest|continue|provide)|feel free|let me know|would you like|if you(?:[’']d"
    r"| would)? (?:like|prefer|want|have|share|provide|can|paste|tell|need|could)"
    r"|is there (?:something|anything|another)|please (?:provide|share|paste|try|consider|let|feel"
    r"|note|reach|contact|send|give|tell)|could you (?:please )?(?:provide|share|paste|send|give"
    r"|tell)|your (?:request|prompt|message|understanding)|you(?:[’']ve| have)?"
    r" (?:asked|requested|described|provided|shared|want)|request(?:s|ed)?|guidelines?|polic(?:y"
    r"|ies)"
    r"|inappropriate|harmful|explicit|graphic|sensitive|copyright\w*|offensive|respectful|unethical"
    r"|ethical|safety|consent|minors?|real (?:people|person|individuals?)|appropriate|how about"
    r"|here[’']s a|here is a)\b"
)
_NO_TEXT = re.compile(
    r"\b(?:message|prompt|text|request) (?:doesn[’']t|does not) (?:seem to |appear to |actually )?"
    r"(?:contain|include|have) (?:any|a|the)\b|"
    r"\b(?:(?:i|there) (?:don[’']t|do not|doesn[’']t|can[’']?t|cannot"
    r"|does not) (?:actually )?(?:see|find|have|seem to (?:see|be|have)) (?:any |a |the "
    r"|an? actual )?(?:\w+ )?(?:story|text|draft|passage|plot|reasons?|content|attachment"
    r"|sentence)|(?:story|text|draft|passage|plot|message|content)"
    r" (?:is|was|seems to be|appears to be|appears) (?:missing|empty|blank|cut off|incomplete|not"
    r" (?:included|attached|provided)))",
    re.IGNORECASE,
)
_APOLOGY = re.compile(
    r"^\W*(?:(?:oh|ah|hm+|well|hi|hello|hey)\W+)?(?:i[’']?m (?:really |very |so |truly )?(?:sorry"
    r"|afraid)|i am (?:really |very |so |truly )?(?:sorry|afraid)|sorry\b|(?:my )?apologies"
    r"|i (?:must |do |sincerely |deeply )?apologi[sz]e|unfortunately|regrettably|i regret)",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"(?i)\b(?:i|we)\s?(?:[’']m afraid (?:that )?i )?{_NOT}(?:\s(?:do (?:that|this|so|it)))?\W*$"
)
_DECLINED = re.compile(r"\b(?:decline|pass)\W*$", re.IGNORECASE)
_NEGATED = re.compile(r"n[’']t\b|\bnot\b|\bcannot\b|\bunable\b", re.IGNORECASE)
# The languages that stories are translated to, and back.
_OTHER_LANGUAGES = re.compile(
    r"(?i)^\W*(?:(?:es )?tut mir (?:wirklich )?leid\W+(?:aber )?(?:das |dabei |bei )?\w*\s?(?:kann"
    r"|darf|werde)"
    r"\b|(?:leider )?(?:kann|darf) ich (?:dir|ihnen|das|dabei|diese\w?|bei|leider|nicht)\b"
    r"|ich kann (?:dir |ihnen |leider |das |dabei |diese\w* )*(?:\w+ )?nicht (?:helfen|übersetzen"
    r"|weiterhelfen|erfüllen)|als (?:ki|künstliche intelligenz|sprachmodell)\b"
    r"|(?:je suis )?désolée?\W+(?:mais )?je ne (?:peux|suis)|je ne peux pas (?:vous |t[’'])?\w*"
    r"(?:aider|traduire|répondre)|en tant qu[’'](?:ia|intelligence|assistant)"
    r"|lo siento\W+(?:pero )?no (?:puedo|me es)|no puedo (?:ayudar|traducir|cumplir|continuar)"
    r"|como (?:ia|modelo de lenguaje|inteligencia artificial|asistente)\b"
    r"|mi (?:dispiace|spiace)\W+(?:ma )?non posso|non posso (?:aiutar|tradurre)"
    r"|(?:sinto muito|desculpe)\W+(?:mas )?não posso|het spijt me\W+(?:maar )?ik kan)"
)


def is_refusal(answer: str) -> bool:
    """Whether an answer says that the model does not do what it was asked."""
    # Without list markers, emphasis, and quotation marks around the whole answer.
    text = answer.strip().strip("*_`#>").strip()
    text = re.sub(r"^(?:[-•]\s+|\d{1,2}[.)]\s+)", "", text)
    if text[:1] in '"“' and text[-1:] in '"”' and not re.search('["“”]', text[1:-1]):
        text = text[1:-1].strip()
    text = _SPOKEN_BY_DASH.sub(" ", _SPOKEN.sub(" “” ", text))
    n_words = len(text.split())
    if _OTHER_LANGUAGES.match(text):
        return n_words <= _LONG
    n_offers = len({match[0].casefold() for match in _OFFERS.finditer(text)})
    sentences = [part for part in _SENTENCE.split(text) if part and part.strip()][:_N_FIRST]
    own = (sentence for sentence in sentences if not _NARRATED.search(sentence))
    return any(_is_refused_in(sentence, text, n_words, n_offers) for sentence in own)


def _is_refused_in(sentence: str, text: str, n_words: int, n_offers: int) -> bool:
    """Whether a sentence declines the task, in a text of `n_words` without its speech."""
    is_short, is_long = n_words <= _SHORT, n_words > _LONG
    decline = _DECLINES.search(sentence)
    declines = decline is not None and not _OTHERWISE.search(sentence[decline.start() :])
    rules = _RULES.search(sentence) is not None
    if _SELF.search(sentence) and (declines or rules or _NEGATED.search(sentence)):
        return not is_long or n_offers > 0
    if _NO_TEXT.search(sentence):
        return not is_long and n_offers > 0
    if rules:
        return declines or n_offers > 1 or is_short
    is_sorry = _APOLOGY.match(sentence) is not None
    if is_sorry and _BARE.search(sentence):
        return is_short
    if _WITHOUT_VERB.search(sentence):
        return is_short or n_offers > (2 if is_long else 0)
    if not declines:
        return False
    if _DECLINED.search(sentence):
        return not is_long and (n_offers > 0 or _TASK.search(text) is not None)
    evidence = is_sorry + (_TASK.search(sentence) is not None) + (n_offers > 0) + (n_offers > 2)
    return evidence >= (1 if is_short else 3 if is_long else 2)
