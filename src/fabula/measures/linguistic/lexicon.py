"""Word lists for what a noun phrase may refer to: persons, animals, titles, speech verbs."""

from __future__ import annotations


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


MALE = _set("""
 man boy lad gentleman fellow father papa dad daddy son brother uncle grandfather grandpa nephew
 husband king prince emperor lord duke count earl baron knight sir master squire monk priest bishop
 wizard giant actor widower groom waiter landlord policeman fisherman huntsman sailor soldier
 shepherd grandson godfather bridegroom sultan rajah pasha czar tsar mr mister monsieur herr don
 john james william george charles henry thomas edward robert joseph richard harry jack tom peter
 paul david daniel samuel arthur albert fred frederick frank walter michael colin dickon ben adam
 felix dan roger simon martin philip patrick hugh ralph oliver andrew alexander benjamin tim jim bob
 bill sam ned will joe dick max oscar victor edmund francis gilbert matthew mark luke stephen lewis
""")
FEMALE = _set("""
 woman girl lady lass maid maiden mother mamma mama mum mummy mom daughter sister aunt auntie
 grandmother grandma granny niece wife queen princess empress duchess countess baroness witch nun
 widow bride bridesmaid actress governess waitress landlady hen goddess nymph mermaid mistress
 madam madame lady granddaughter godmother stepmother stepdaughter housewife mrs miss ms fraulein
 mary anne ann anna elizabeth jane margaret sarah alice emily emma charlotte catherine kate ellen
 helen rose ruth susan grace lucy laura juliet julia martha nancy dorothy wendy diana marilla rachel
 cecily felicity sara cathy isabella eliza fanny jenny polly amy beth betty bessie clara edith ethel
 florence flora harriet ida irene jessie josephine judith lily louisa maria mabel matilda molly
 nelly nora olivia pauline phoebe rebecca sophia sophie sylvia theresa victoria violet virginia
""")

PERSONS = _set("""
 person child baby friend neighbour neighbor cousin doctor teacher servant guest stranger visitor
 traveller traveler cook gardener farmer miller tailor baker butcher merchant thief robber magician
 captain judge lawyer nurse clerk minister parent orphan twin lover enemy beggar peasant prisoner
 pirate fairy dwarf elf goblin troll ogre ghost spirit angel devil creature somebody someone
 anybody anyone everybody everyone nobody hero heroine youth infant relative companion messenger
 writer author poet artist painter singer dancer player student pupil scholar professor leader chief
 hunter woodcutter shoemaker blacksmith carpenter owner passenger driver fool wretch darling dear
 people folk family crowd couple pair company courtier attendant secretary detective inspector
 colonel general major lieutenant sergeant officer editor manager agent citizen patient victim
""")

ANIMALS = _set("""
 animal beast bird dog cat horse pony donkey ass mule cow ox bull calf sheep lamb ram goat kid pig
 wolf fox bear lion tiger panther leopard elephant monkey ape rabbit hare mouse rat mole toad frog
 snake serpent python cobra dragon fish whale seal crow raven rook robin sparrow swallow lark owl
 eagle hawk swan goose duck cock rooster chicken peacock parrot nightingale stork squirrel badger
 otter hedgehog deer stag hound puppy kitten colt foal bee ant spider fly butterfly mongoose jackal
 camel buffalo crocodile tortoise turtle crab
""")

TITLES = _set("""
 mr mrs miss ms mr. mrs. ms. dr dr. sir lady lord master king queen prince princess captain colonel
 professor aunt uncle cousin brother sister father mother saint st. st emperor empress duke duchess
 count countess old young little dear poor the
""")

DISTINGUISHING = _set(
    "other another different second third fourth fifth next last new eldest youngest elder younger "
    "first same two three four five six seven half more most such own"
)
"""Words that distinguish one thing from another of the same name."""

TIMES = _set(
    "time day night morning evening noon midnight daylight dark winter summer spring autumn "
    "o'clock dawn week month year sunday monday tuesday wednesday thursday friday saturday "
    "christmas late early cold hot warm true possible impossible clear certain"
)
"""Complements that make `it` expletive: "it was night"."""

PRONOUNS: dict[str, tuple[int, str, str]] = {
    **dict.fromkeys(("i", "me", "myself", "mine"), (1, "s", "mf")),
    **dict.fromkeys(("we", "us", "ourselves", "ours", "'s"), (1, "p", "mfn")),
    **dict.fromkeys(("you", "yourself", "thou", "thee", "ye", "yours"), (2, "s", "mf")),
    **dict.fromkeys(("he", "him", "himself", "his"), (3, "s", "m")),
    **dict.fromkeys(("she", "her", "herself", "hers"), (3, "s", "f")),
    **dict.fromkeys(("it", "itself"), (3, "s", "n")),
    **dict.fromkeys(("they", "them", "themselves", "'em", "theirs"), (3, "p", "mfn")),
}
"""Person, number and genders of a pronoun."""
