"""Notes on the lines of a draft: each kind is found where it was put, and not where it was not."""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.commands import invoke

from fabula.core.store import read_rows
from fabula.core.types import Document
from fabula.linguistic.metrics import TextTools
from fabula.style.lines import LINE_KINDS, LineReview, is_misspelt, read_lines

PLAIN = (
    "The ferry came in at noon with nobody on deck. Anna put down her basket and counted the "
    "ropes, as her father had taught her. Three were missing. She went to ask the pilot, who was "
    "asleep under a tree and did not want to be asked anything before his dinner.\n\n"
    "“Where is everybody?” she said.\n\n“At the wedding,” said the pilot. “Go home.”"
)


SEA = " ".join(
    f"The {one} turned at noon. She counted every {one} again. Nobody came to the {one}."
    for one in ("tide", "wind", "boat", "net", "rope", "lamp", "stove")
)
"""Twenty-one sentences that name nobody."""


def told_of(*names: str) -> str:
    """Forty-two sentences about each person in turn."""
    acts = ("rowed home", "mended a net", "lit the stove", "counted the boats", "read a letter")
    days = [(name, k) for name in names for k in range(1, 43)]
    return " ".join(f"On day {k} of the voyage {name} {acts[k % 5]}." for name, k in days)


def thrice(name: str, other: str) -> str:
    many = f"There came {name}. Later we saw {name} dance. All looked at {name} then"
    return f"{many}, and when {other} fell, nobody laughed."


PASTED = (
    "The keeper trimmed the lamp and wrote the hour in his book, and when the tide had turned he "
    "went down to see whether the boat was dry."
)
LIVED = "Nobody had lived there since the summer fire."
opened = cache(TextTools)


def read(text: str) -> LineReview:
    return read_lines(opened(), Document("d", text))


def found(text: str) -> list[tuple[str, str]]:
    return [(note.kind, text[note.start : note.end]) for note in read(text).notes]


@pytest.mark.parametrize(
    "text",
    [
        # Foreign, dialect, old verbs, and what somebody spells as they speak.
        "C'est beaucoup que le jugement des hommes; tard il devient efficace, they read aloud.",
        "“Thou beliest thine own heart,” said the old captain to his mate.",
        "“Looky here, sumfn's wrong wid dey boat,” the old man said at last.",
        "The dog warn't there when they came home from the harbour.",
        "I warn't tired, and I knowed it. They was late, but it ain't my way to say so. We was "
        "going to the river, and nobody knowed why.",
        # What only looks like a slip.
        "“I waited,” he said, “and waited.\n\n“Nobody came,” said the man, and that was that.",
        "Chapter XXX had had a unanimous vote in an hour, and she gave her her hat about your not "
        "being there. A one-eyed man came then, and then another.",
        "“I went home, he went home,\n    and nobody was there\n    but the cat.",
        "He read:\n\n“*Dear Tom,*\n\n*All is well here.*\n\n*Your sister.*”\n\nHe sighed.",
        "“Not so fast,’’ said Joe. \"Wait.”\n\n```\nDear Tom: come home.\n```\n\nHe went.",
        # Names that are names, and one as often as a name.
        thrice("Barnet", "Barnes") + " " + thrice("Chobham", "Cobham") * 5,
        # Who is from a place is no misspelling of it.
        "They went to Kjoge by boat. Kjoge was small. She liked Kjoge. A Kjoger hen sat there.",
    ],
)  # fmt: skip
def test_what_is_right_in_novels_is_not_noted(text: str):
    assert found(PLAIN) == []
    kinds = {kind for kind, _ in found(text)}
    slips = {"doubled", "placeholder", "unclosed", "paragraph", "sentence"}
    assert not kinds & {"spelling", "grammar", "name", *slips}


@pytest.mark.parametrize(
    ("kind", "place", "text"),
    [
        ("echo", "gnarled", "His gnarled hand held the gnarled vellum to the window."),
        ("spelling", "recieve", "They did not recieve the letter until spring."),
        ("spelling", "recieve", "“They did not recieve the letter,” said the clerk."),
        ("spelling", "embarassed", "She was embarassed, as everybody could see."),
        ("spelling", "didnt", "They didnt know the way to the harbour."),
        ("grammar", "was", "They was late for the boat, and nobody came."),
        ("grammar", "go", "He go to the harbour in the morning, and nobody knew why."),
        ("renamed", "Victor", told_of("Henry", "Victor")),
        ("sentence", LIVED, f"{LIVED} It stood open. {LIVED}"),
        ("sentence", f"Since then {LIVED}", f"Since then {LIVED}\n\nNo.\n\nSince then {LIVED}"),
        ("name", "Kathrine", thrice("Katherine", "Kathrine")),
        ("name", "Eleano", thrice("Eleanor", "Eleano")),
        ("name", "Waiter", thrice("Walter", "Waiter")),
        ("doubled", "on\non", f"{'It rained a great deal in May. ' * 3}It stood on\non the table."),
        ("placeholder", "[CHECK: name of the town]", "[CHECK: name of the town] lay behind them."),
        ("placeholder", "TK", "It was TK miles to the harbour, and nobody spoke."),
        ("unclosed", "“Nobody came, said she.", "“Nobody came, said she.\n\nThe bell rang twice."),
        ("unclosed", '"Nobody came.',
         '"I waited," she said. "Nobody came.\n\nThe bell rang twice.'),
        ("paragraph", PASTED, f"{PASTED}\n\nIt rained.\n\n{PASTED}"),
        ("grammar", "Your", "“Your the last one,” said the man in the booth."),
        ("grammar", "could of", "It could of been anyone at all, and nobody asked."),
        ("grammar", "may of", "“She may of written to him,” said Ann."),
        ("grammar", "was’nt", "It was’nt the last of the boats."),
        ("doubled", "lent me one of lent me one of", "He lent me one of lent me one of his."),
        ("unclosed", "“Get out, he said.", "“Get out, he said.\n\n“Why?” she asked.\n\nIt rained."),
        ("unclosed", "“I wish I could catch one!", "“Fish,” he said. “I wish I could catch one!\n\n"
         "“Not everyone can,” said Joe.\n\nThey sat down."),
        ("unclosed", "‘I have crossed worse.", "‘Stop,’ he said.\n\n‘I have crossed worse.\n\n"
         "‘You have not,’ said Joe. ‘Nor have I.’"),
        ("grammar", "longer then", "The road was longer then they had thought it was."),
        ("grammar", "a", "They waited a hour for the boat."),
        ("grammar", "an", "In an quiet room the clock was heard."),
        ("doubled", "sat down and wrote sat down and wrote",
         "She sat down and wrote sat down and wrote a letter."),
        ("grammar", "walked straight passed", "She walked straight passed the church."),
        ("grammar", "'s to", '"It\'s to hot, Curtis," she said.'),
        ("grammar", "who’s", "He had two brothers, who’s boots left mud on the floor."),
        ("grammar", "kept there", "The girls had kept there promise to save some for us."),
        ("grammar", "you’re", "“And do you still bite you’re nails at night?”"),
        ("grammar", "began", "She talked without stopping, for she had began to be afraid."),
        ("grammar", "mothers", "He had books on his mothers ticket."),
        ("grammar", "pickup's", "There were pickup's parked all over the pasture."),
        ("grammar", "stones.Now", "You could see the stones.Now it was brown."),
        ("grammar", ",,", "It was brown,, and it went by at a trot."),
        ("grammar", "there", "It was late. there had been a good deal of rain."),
        ("grammar", "flask", f"He had started to take his own flask\n\n{PASTED}".replace(
            "He had", "He was a careful man, and in the second winter he had")),
        ("grammar", "by it’s", "She caught it by it’s string, and held on."),
        ("grammar", "on Thursday’s", "They had a band in on Thursday’s and the place was full."),
        ("grammar", "didn’t went", "He didn’t went to the harbour."),
        ("grammar", "in the middle", "She fell asleep in the middle a verse."),
        ("grammar", "wanted", "They wanted go home before the rain."),
        ("grammar", "there was", "At the back there was only six rooms left."),
        ("grammar", "tiers has", "The top three tiers has slid toward the river."),
        ("grammar", "nurse’s", "Two of the nurse’s were laughing, and the nurse’s were late."),
        ("grammar", "He", "The rain had not stopped for a week He was tired of it."),
        ("grammar", "a", "“I gave him a urn for it,” said Ann."),
        ("unclosed", "Biscuits,’",
         "‘Stop,’ he said.\n\nBiscuits,’ said Ann, and went.\n\n‘What for?’ he asked."),
        ("unclosed", "'Nobody came.",
         "'I waited,' she said.\n\n'Nobody came.\n\nThe bell rang twice. 'Go,' he said."),
        ("name", "Delores", "Dolores sang, and so did I. I saw Dolores go home. " * 5
         + "Delores had not sung since."),
        ("spelling", "penrith", "The way to Penrith is long, and Penrith is dull. He saw penrith."),
        ("name", "Cecilly", "Then Cecily came, and so did I. " * 20 + "Cecilly began to cry."),
        ("placeholder", "(CHECK)", "It was in the hall in Leeds (CHECK), eleven miles off."),
        ("grammar", "to breath", "He tried to breath. It was dark."),
        ("grammar", 'there"', 'She sat up. "There is someone in there" she said.'),
        ("grammar", 'about."', '"Kids messing about." said Mr Pruitt, and went in.'),
        ("grammar", "He", 'It was late. "I know it well," He told the driver.'),
        ("grammar", "she", 'He sat up and said. "she told me there was nobody in."'),
        ("grammar", "november", "They close the pool in november and sell the chairs."),
        ("grammar", "begun", "He begun to lean over the rail, very slowly."),
        ("grammar", "as far", "She reached as far she could, and fell."),
        ("unclosed", '"I am, Dennis said. "Who are you?"', '"I am, Dennis said. "Who are you?"'),
        ("placeholder", "[STREET]", "The store on [STREET] had a drawer of them."),
        ("grammar", "had to asked", "He had to asked her to lower the price."),
        ("grammar", "everyone.’", "‘It looks at everyone.’ said Ossie. ‘All day.’"),
        ("grammar", "She", '"Is it loud?" She asked. The bell rang.'),
        ("grammar", "Said", "“You know the way,” Said Ossie, and went."),
        ("grammar", 'run."', '"What loads did you run." He did not say.'),
        ("grammar", "it.", "He could say that now it had that, hadn’t it. The wind dropped."),
        ("grammar", "?,", '"Where\'s the piece?," she says, and looks up.'),
        ("grammar", "Every breathe", "Every breathe he took had a squeak on the end of it."),
        ("grammar", "somebodys", "He built it from elm and bits of somebodys staircase."),
        ("grammar", "Each were", "They were shoes. Each were tucked in behind a stone."),
        ("grammar", "two hours", "It was two hours work at most."),
        ("grammar", "results of it was", "The results of it was still to be seen."),
        ("spelling", "london", "They went to london by the early boat."),
        ("doubled", "behind behind", "He put the wire behind behind his ears."),
        ("grammar", "was walkers", "It was a holiday and there was walkers all over the road."),
        ("grammar", "became", "They passed a chapel that had became somebody’s kitchen."),
        ("grammar", "There was", "There was four people aboard, and nobody said a word."),
        ("grammar", "carpenters was", "He passed while carpenters was emerging from the boats."),
        ("grammar", "mothers", "She came in wearing my mothers old parka and sat down."),
        ("grammar", "declined", "The sun persistently declined rise on that day of the year."),
        ("grammar", "somewhere.”", "“There’ll be money in it somewhere.” she tells the driver."),
        ("grammar", "”", "He looked at the vicar. “Ron would get up and walk here”"),
        ("grammar", "I cant", "The vacant, significant applicant was elegant. I cant say why."),
        ("grammar", "me.”", "“That’s me.” Joyce said. The man looked at her for a while."),
        ("grammar", "third,’", "‘What’s on third,’ I asked. He looked at the lift and sighed."),
        ("doubled", "in the in the", "She dropped it in the in the bin on her way to the door."),
        ("grammar", "that,”", "“May I see that,” said Hester. The man gave it to her."),
        (
            "grammar",
            "axe",
            "She had dived there for nine years, and all that time she had kept the axe\n\n*\n\n"
            "On the boat nobody spoke.",
        ),
        ("spelling", "succintly", "And Spargo, briefly, succintly, retold the whole story."),
        ("placeholder", "(he knows here??)", "She squared up the edges. (he knows here??) He sat."),
        ("grammar", 'this,"', '"How do I even list this," said Ann, and sat down.'),
        ("grammar", "in from", "They met each other in from of the bonnet."),
        ("placeholder", "XX", "He had mended XX yards of the top wall."),
        ("placeholder", "[CITY NAME]", "He lived in a nursing home in [CITY NAME], with a view."),
        ("grammar", "picks", f"{'It was late. She was cold. ' * 3} He picks up the ticket again."),
        ("grammar", "turns", f"{'Ann rose. ' * 5} Ann shrugged her shoulders and turns to go."),
        ("grammar", "Bernadettes", f"{'Bernadette rose. ' * 5} Bernadettes window came down."),
        ("grammar", "began to felt", "She began to felt something like hope."),
        ("grammar", "foot on the break", "She had her foot on the break, and nothing happened."),
        ("grammar", "The", "It was a good throw. The did it five more times before dark."),
        ("grammar", "would could", "No amount of scrubbing would could shift it."),
        ("grammar", "then", "They did what they needed to. then she reached over and took it."),
        ("grammar", "he rose got", "Without replying, he rose got to his feet and went."),
        ("grammar", "sprang", "A cool breeze had sprang up, and the clouds went by."),
        ("placeholder", "[better word?]", "He gazed almost lovingly [better word?] at her."),
        ("grammar", "as pale than", "He was not as pale than she was."),
        ("grammar", "made there", "They made there way to a small clump of trees."),
        ("grammar", "who.", "It was hatred for the woman who. As she grew, so did it."),
        ("doubled", "in in", "She saw him a quarter of an hour later in in the card room."),
        ("grammar", "did not talked", "He did not talked while he worked."),
        ("grammar", "would had", "He would had have heard it too."),
        ("grammar", "She had wipe", "She had wipe her face before she could answer."),
        ("grammar", "might written", "She looked, as though the number might written there."),
        ("grammar", "might having", "I think she might having a last look round."),
        ("grammar", "she's not did", "She had my hand, which she's not did since then."),
        ("grammar", "had being", "It looked like something that had being trimmed."),
        ("grammar", "had stop taking", "Gwen found that she had stop taking bookings."),
        ("grammar", "a my", "I put a my hand on her arm and we stopped."),
        ("grammar", "the was", "I looked up, the was probably the last time."),
        ("grammar", "the heel her hand", "She hit the tire with the heel her hand."),
        ("grammar", "a number times", "He had asked her a number times."),
        ("grammar", "a cup tea", "He was fond of a cup tea in the morning."),
        ("grammar", "for long time", "They sat there for long time and spoke of other things."),
        ("grammar", "for her speak", "He waited for her speak, fearful of what he might hear."),
        ("grammar", "that they going", "He thought that they going back to the house."),
        ("grammar", "raised it’s", "The horse raised it’s head to look at him."),
        ("grammar", "to go the village", "They were afraid to go the village after dark."),
        ("grammar", "Leora and him worked", "In the evening Leora and him worked in the garden."),
        ("grammar", "members the public", "The pool let in members the public at noon."),
        ("grammar", "drawer full odd laces", "There was a drawer full odd laces in the hall."),
        ("grammar", "to stayed", "I had to work to stayed level with her."),
        ("grammar", "if you a", "She asked if you a man of your word."),
        ("grammar", "older that", "He looked older that he had ten minutes before."),
        ("grammar", 'more."', '"Four more." I said. I had forgotten the cold.'),
        ("grammar", "ought to should", "We see when you ought to should see things off."),
        ("grammar", "places were", "It was one of those places were they cut keys."),
        ("grammar", "its", "“I’ve told him its free.”"),
        ("doubled", "was was", "She told everybody that it was was the milkman."),
        ("grammar", "when got", "It was nearly dark when got home."),
        ("grammar", "had rose again", "The town had rose again on the hill."),
        ("grammar", "been know", "She had never been know to use it."),
        ("spelling", "akwardness", "She was aware of some akwardness in the room."),
        ("grammar", "They", "They filed until dark They slept in the hall."),
        ("grammar", "been", "The boy was called Oru. He been sent to her in the spring."),
        ("grammar", 'run."', '"Does it run." The man looked at him.'),
        ("grammar", 'suit."', '"How much is the whole suit." The man looked at him.'),
        ("grammar", "Mum", '"Mum have you locked the door?" she said.'),
        ("grammar", "Asked", "“Who sent you?” Asked the puzzled voice."),
        ("grammar", "watched watching", "She stood there and watched watching her go."),
        ("grammar", "thought about of", "She thought about of giving him the answer."),
        ("grammar", "a hands", "There was a hands width between us."),
        ("grammar", "sits", f"{'It was late. Ann rose. ' * 12}Ann sits down on the step."),
    ],
)  # fmt: skip
def test_what_was_put_there_is_noted_at_its_place(kind: str, place: str, text: str):
    assert (kind, place) in found(text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            "grammar",
            "Lady Dormer’s will divided this fortune. The old gate could bring them in. He wanted "
            "to found a museum, and should anything befall him, he must needs sing. “My mind was "
            "took up with it, like,” he said. I sung it. I sung it again. “They ain’t went and "
            "would gone,” she said. By the by, he liked the would-be poet. “Would you look at "
            "that.” Yes, my lady said My lord. “Where they going?” he said. “Listen me.” "
            "(She sings, they say.) One of Ann Peters’ worst memories was of him. “I tell you "
            "we’re lucky to see your fine house.” He kissed one by one the men in front of him. "
            "Some of the members the committee named were absent. On the floor the glass. We have "
            "such little time. It was for her stay on the island. The talk between Ann and him had "
            "lasted. He drank from a glass milk bottle, when looked at closely. Behind closed "
            "doors he came to opened windows.",
        ),
        ("echo", "They tore the contract limb by limb, shoulder to shoulder, without a word."),
        ("echo", "“A lantern!” he said. “Give me the lantern and go.”"),
        ("spelling", "Then the doxing began, and the prepper in his haute couture went home."),
        ("spelling", "A tri-colored flag hung there, unearthly in the light."),
        ("spelling", "I saw Grandad wave, and Grandad saw me, for my grandad never sleeps."),
        ("grammar", "I send you 3 B of it.\n\nYours,\n\nB"),
        ("renamed", told_of("Henry", "Indians")),
        ("spelling", "He calls it pax. 'Pax then,' she said. 'Pax,' they all said."),
        ("doubled", "When you say it it sounds like her. They dug and they dug and they dug."),
        ("grammar", "Lending ears was common in Roman times. Ten thousand dollars is a lot."),
        ("grammar", 'The sign read "Home" and she said nothing. Had he begun, he would know.'),
        (
            "doubled",
            "What he is is a fool. It went on and so on and so on. He came to see what went on on "
            "deck. “Any, of of, of course,” he said. Once you got it you got it.",
        ),
        (
            "grammar",
            "Two strokes was a birth. If, in the end, she were to go, it was nothing. He feared "
            "lest it was it breath. “How do you do.” Hadn’t she seen? The ’eated room was in use.",
        ),
        (
            "grammar",
            "Our neighbors tomorrow go to sea. There a pine grew by the road. He may come down "
            "of his own accord. Did anyone have any where golf was concerned? It’s Thursday. There "
            "was cakes and ale.",
        ),
        (
            "spelling",
            "He put the picture in an old kodak, and died in gaol. The effect of it was brung.",
        ),
        ("name", "Norah came. " * 9 + "They sailed to North Carolina, and nobody came."),
        ("name", "Dawson came, and I. " * 9 + "Ernest came. They read Ernest Dowson aloud."),
        (
            "renamed",
            told_of("Henry").replace(" home", " home with his dog")
            + " "
            + told_of("Clara")
            .replace(" home", " home with her dog")
            .replace("lit", "lit, herself, in her"),
        ),
        (
            "unclosed",
            "“I have a song,” he said. “It goes:\n\nRow, row, row your boat,\nGently down "
            "the stream.\n\nThat is all there is of it.”\n\nNobody sang.",
        ),
        (
            "unclosed",
            "“She says, ‘I told them, “Go home!” and they went.’ That was all.”\n\nIt rained.",
        ),
        ("spelling", "We asked for Zorvath at the gate, and old Zorvath came."),
        # The first name recurs; two names could follow it; the second begins much later.
        ("renamed", told_of("Henry", "Victor") + " Then Henry came back."),
        ("renamed", told_of("Henry", "Victor") + f" {told_of('Martin')}"),
        ("renamed", told_of("Henry") + f" {SEA}{SEA} " + told_of("Victor")),
        ("name", "Mason came with Jason. Mason spoke, Mason sang, and Mason left."),
        ("name", thrice("the Count", "the Court")),
        ("name", thrice("the Americans", "the Americas")),
        ("name", "The Miller came. Miller sat, Miller ate; the Millers are all like that."),
        ("sentence", f"{LIVED}\n\nIt stood open to the sea.\n\n{LIVED}"),
        ("doubled", "On and on and on and on they went, on and on and on."),
        (
            "unclosed",
            "“Dear Ann,\n\n“It rained.\n\n“Yours most cordially,\n\nAGNES.\n\nShe read it.",
        ),
        (
            "unclosed",
            "“It lay, it is said, by the sea, and nobody found it in all the years of the war.\n\n"
            "“Nobody looked.”",
        ),
        (
            "unclosed",
            "‘Stop,’ he said. The ‘Poop-poop’ of it rang.\n\n‘I waited for an hour and then for "
            "two more, and the boat did not come in with the tide.\n\n‘So I went home,’ he said.",
        ),
        ("sentence", "“Who has it now, and where?” he asked. “Who has it now, and where?”"),
        ("spelling", "He went wanderin’ about, and wanderin’ he fell."),
        ("grammar", "“He go to the harbour in the morning,” she said."),
        ("grammar", "She held him out to be an honest man, and found an urn in an hotel."),
        (
            "grammar",
            "He knew that God was good and that He was near, and it’s a thing they knew of.",
        ),
        ("grammar", "“If you had a old coat ye ain’t wearin’,” she said, “I’d take it.”"),
        (
            "grammar",
            "The boat he came in was old. In the end the men had come home, as they ought.",
        ),
        ("grammar", "One of the lights was out. The cement works has been quiet for three days."),
        ("grammar", "They stood at the fire, longing for the re-entrance of her elder cousin."),
        ("grammar", "He took the mill, and so he ground meat and drink to last all winter."),
        ("grammar", "She told her her own name, and no no, it was not hers."),
        # Who writes so in every other sentence means it.
        (
            "grammar",
            "The boats was late. The men was cold. The dogs was hungry, and the sea come in.",
        ),
        ("grammar", "The fear he had drove him on, and the pair of coarse, fat candles went out."),
        (
            "grammar",
            "The waiter had just passed the bread. He threw it away, and nobody saw who’s in.",
        ),
        (
            "grammar",
            "Catherine is spelt with an a in the middle. It’s own up time. The call of it...",
        ),
        ("grammar", "“Are you sure,” she said, “that he saw it?” Nobody in the room was sure."),
        ("grammar", "The sign over the gate had not changed: “Keep off the grass”"),
        ("grammar", "There was two hours of daylight left, and all that cant about honour."),
        ("grammar", "It is as far the other way, he said, and told them that he would leave."),
        ("grammar", "A few hundreds of pounds was nothing to the paper that employed him."),
        ("grammar", "I cant say. I cant tell you. She said that I cant ask her about it."),
        ("spelling", "He said that they took ’im to the station and left him there."),
        ("grammar", "He sat and ate. He always bets when he is angry. He lost, and he went home."),
        ("grammar", "He sat. He got out his silver spurs and wept. She left tears and kisses."),
        (
            "grammar",
            "As he sunk to the floor he saw the words. He feared lest he lose control of it.",
        ),
        ("grammar", "“Il y a ici une dame,” she said, “qui t’a vu.” The hon. member sat down."),
        (
            "grammar",
            "“He’d of come. If he’d of lived he’d of been great. You’d of seen it,” she said.",
        ),
        (
            "grammar",
            "How did it use to be? He would just as soon I went, and so would all those men.",
        ),
        (
            "grammar",
            "As he said these words was heard a shot. The wild red cyclamen was out again.",
        ),
        ("spelling", "The valet de chambre had a slaty hue. He went to grub by san‑cta Mariia."),
        ("spelling", f"{'Victoria came. ' * 5} They drove home from the sea in a victoria."),
        ("name", f"{'Marie came. ' * 9} “Maria!” he cried. “Mariey!” Then Octavia came."),
        (
            "doubled",
            "She came in in the evening. Let him in in the morning, and take it in in time.",
        ),
        (
            "grammar",
            "He going to town. They laughing at him. I know that she coming when we going.",
        ),
        ("doubled", "He strolled in in the morning after the morning after we had left."),
        ("doubled", "Those that were were not the type. I ran and I ran and ran, and fell down."),
        ("doubled", "She had been looking for for years, and he pressed on on a broad front."),
        ("unclosed", "He read it aloud:\n\n“Dear Ann, they said.\n\nMother is ill.”\n\nIt rained."),
        ("unclosed", "It went:\n\n“Ah! if you knew\nwhat eyes can tell\n\nShe laughed at that."),
        ("unclosed", "It said:\n\n“Fly at once. All is known.\n\n“—A friend.”\n\nHe fled to sea."),
    ],
)
def test_what_only_looks_like_it_is_not_noted(kind: str, text: str):
    assert kind not in {name for name, _ in found(text)}


def test_what_the_checker_finds_too_is_noted_once():
    text = (
        "It was infront of us everytime in february. It could of been anyone, and had alot to say."
    )
    wanted = ["infront", "everytime", "february", "could of", "alot"]
    assert [place for _, place in found(text)] == wanted


def test_straight_quotation_marks_give_the_same_notes():
    text = PLAIN + " “I never saw him,” she said. It would of been there, she thought."
    straight = text.replace("“", '"').replace("”", '"')
    assert found(text) == found(straight)
    assert found(text)


@pytest.mark.parametrize(
    ("text", "reason"), [("", "no_words"), ("Der Hund lief über die Straße. " * 9, "German")]
)
def test_what_cannot_be_read_has_a_reason_and_no_notes(text: str, reason: str):
    review = read(text)
    assert review.notes == ()
    assert reason in str(review.missing_reason)
    # Words of another language were not counted, which is not to have none.
    assert review.n_words == (None if text else 0)


def plainest(kind: str, text: str) -> list[str]:
    notes = [one for one in read(text).notes if one.kind == kind]
    return [text[one.start : one.end] for one in sorted(notes, key=lambda one: -one.strength)]


def test_a_slip_is_noted_and_what_somebody_says_and_rare_words_are_not():
    # Of the three, only "seperate" is an error; "thriven" is in no dictionary of the checker.
    text = (
        "“That is t' fowld of the farm,” said Joseph. It had thriven there, while the lamb slept. "
        "It was a seperate matter, and nobody spoke of it again."
    )
    assert plainest("spelling", text) == ["seperate"]


def test_a_capitalized_noun_has_one_spelling():
    nation = "We serve our Nation, and the Nation is strong. " * 3
    text = f"{nation}They defend our Naiton with care."
    (note,) = [one for one in read(text).notes if one.kind == "name"]
    assert text[note.start : note.end] == "Naiton"
    assert note.why == "“Naiton” here, but “Nation” 6 times in this text."


def test_words_made_of_others_and_words_of_published_books_are_not_misspellings():
    meant = ("foemen", "leant", "fadeless", "unbrimmed", "gaol", "kelpy")
    slips = ("slighty", "prefered", "untill", "pryed", "truely")
    text = " ".join(f"It was what everybody called {word} at that time." for word in meant + slips)
    assert [place for kind, place in found(text) if kind == "spelling"] == [*slips]


def test_a_kind_is_on_unless_it_is_known_to_be_wrong_more_often_than_right():
    kinds = LINE_KINDS.values()
    off = [kind.id for kind in kinds if not kind.is_on]
    assert off == [kind.id for kind in kinds if 2 * kind.n_right < kind.n_labelled]
    assert off == ["echo"]
    assert (LINE_KINDS["grammar"].shown, LINE_KINDS["name"].shown) == ("right 95 %", "")
    # They stand in the order of how much they matter.
    assert sorted((kind.weight for kind in kinds), reverse=True) == [kind.weight for kind in kinds]


NAME = st.text("abcdeR", min_size=5, max_size=8).map(str.capitalize)


@given(NAME, NAME)
@settings(max_examples=100)
def test_a_misspelling_is_one_edit_away_as_a_slow_oracle_has_it(name: str, other: str):
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    near = {name[:k] + name[k + 1 :] for k in range(len(name))}
    near |= {name[:k] + c + name[k:] for k in range(len(name) + 1) for c in letters}
    near |= {name[:k] + c + name[k + 1 :] for k in range(len(name)) for c in letters}
    near |= {name[:k] + name[k + 1] + name[k] + name[k + 2 :] for k in range(len(name) - 1)}
    is_plural = {name + "s", other + "s"} & {name, other}
    wanted = name != other and name[0] == other[0] and other in near and not is_plural
    assert is_misspelt(name, other) == wanted


def test_the_plainest_notes_of_a_kind_come_first():
    """Transposed letters before an old word, a long repeated sentence before a short one."""
    short, long = "Joe gave me some more gravy.", LIVED
    text = (
        f"He was in pattens. They did not seocnd him. {short} He ate. {short} It stood open. "
        f"{long} It rained. {long}"
    )
    assert plainest("spelling", text)[0] == "seocnd"
    assert plainest("sentence", text)[0] == long


def test_the_command_lists_notes_with_lines(tmp_path: Path):
    draft = tmp_path / "draft.txt"

    def said(*words: str, code: int = 0) -> str:
        return invoke("report", "--only", "lines", draft, *words, code=code).output

    draft.write_text(f"{PLAIN}\n\nThey did not recieve it.\n\n“I never saw him,” she smiled.\n")
    (row,) = json.loads(said("--json"))
    assert [(n["line"], n["kind"], n["text"], n["precision"]) for n in row["notes"]] == [
        (7, "spelling", "recieve", pytest.approx(16 / 21))
    ]
    assert "recieve" not in said("--without", "spelling")
    draft.write_text("His gnarled hand held the gnarled vellum to the window.")
    assert "nothing to note" in said()
    assert "1 echo" in said("--with", "echo").splitlines()[0]
    wrong = said("--without", "style", code=2)
    assert "'style': must be one of originality, fluency" in wrong


ROOT = Path(__file__).parents[2]
LABELS = ("right", "taste", "wrong")


@pytest.fixture(scope="module")
def labels() -> list[dict[str, Any]]:
    files = [ROOT / part / "line_labels.jsonl" for part in ("bench", "tests/golden")]
    return [row for file in files for row in read_rows(file)]


def test_no_kind_claims_more_right_notes_than_were_labelled(labels: list[Any]):
    counts = Counter((row["kind"], row["label"]) for row in labels)
    assert {kind for kind, _ in counts} <= LINE_KINDS.keys()
    for kind in LINE_KINDS.values():
        assert kind.n_right <= counts[kind.id, "right"]
        assert kind.n_labelled <= sum(counts[kind.id, label] for label in LABELS)


def test_the_manual_has_the_figures_that_the_labels_give(labels: list[Any]):
    """Each kind: what is printed beside its notes; right, taste, wrong of the latest round with it,
    and SciPy's exact interval."""
    from scipy.stats import binomtest

    page = (ROOT / "docs" / "writer.md").read_text(encoding="utf-8")
    titles = {kind.title.strip("?").lower(): kind.id for kind in LINE_KINDS.values()}
    counts = Counter((row["round"], row["kind"], row["label"]) for row in labels)
    precisions = 0
    rows = r"^\| ([a-z ]+?)( \(off\))? \|([^|\n]*)\|([^|\n]*)\|$"
    for title, off, now, latest in re.findall(rows, page, re.MULTILINE):
        if (kind := titles.get(title, title)) not in LINE_KINDS:
            continue
        known = LINE_KINDS[kind]
        assert bool(off) == (not known.is_on), title
        figures = f"{known.n_right} of {known.n_labelled}, {100 * (known.precision or 0):.0f} %"
        few = f"{known.n_right} of {known.n_labelled}" if known.n_labelled else "not known"
        assert now.strip() == (few if known.precision is None else figures), title
        precisions += 1
        rounds = [number for number, of, _ in counts if of == kind]
        if not rounds:
            assert latest.strip() == "none found", title
            continue
        three = [counts[max(rounds), kind, label] for label in LABELS]
        ends = binomtest(three[0], sum(three)).proportion_ci(method="exact")
        shares = [round(100 * one) for one in (three[0] / sum(three), ends.low, ends.high)]
        shown = ", ".join(map(str, three))
        assert latest in (f" {shown} ", f" {shown}: {shares[0]} % [{shares[1]}, {shares[2]}] ")
    assert precisions == len(LINE_KINDS)
