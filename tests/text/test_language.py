"""Only English is measured: other languages are refused, and no English is."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.text.sentences import _has_english_words, language_gate, not_english

# The first article of the Universal Declaration of Human Rights, prose of ours, and first lines of
# books in the public domain; some without their accents, as they are typed in haste.
FOREIGN = {
    "Finnish": "Vanha mies istui ikkunan ääressä ja katseli lunta. Hän muisti talven, jolloin joki "
    "oli jäätynyt niin paksusti, että hevoset kulkivat sen yli.",
    "Turkish": "Yaşlı adam pencerenin yanında oturuyor ve karı seyrediyordu. Nehrin donduğu kışı "
    "hatırladı, atlar üzerinden geçmişti.",
    "Romanian": "Batranul statea la fereastra si privea zapada. Isi amintea iarna in care raul "
    "inghetase atat de tare incat caii il treceau.",
    "Latin": "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor "
    "incididunt ut labore et dolore magna aliqua. Ut enim ad minim veniam, quis nostrud "
    "exercitation ullamco laboris nisi ut aliquip ex ea commodo consequat.",
    "French": "Longtemps, je me suis couché de bonne heure. Parfois, à peine ma bougie éteinte, "
    "mes yeux se fermaient si vite que je n'avais pas le temps de me dire : « Je m'endors. »",
    "German": "Als Gregor Samsa eines Morgens aus unruhigen Träumen erwachte, fand er sich in "
    "seinem Bett zu einem ungeheueren Ungeziefer verwandelt.",
    "Dutch": "De oude man zat bij het raam en keek naar de sneeuw. Hij herinnerde zich de winter "
    "waarin de rivier zo dik bevroren was dat de paarden eroverheen liepen.",
    "Afrikaans": "Die ou man het by die venster gesit en na die sneeu gekyk. Hy het die winter "
    "onthou toe die rivier gevries het.",
    "Welsh": "Eisteddodd yr hen ddyn wrth y ffenestr a gwyliodd yr eira. Cofiodd am y gaeaf pan "
    "rewodd yr afon.",
    "Russian": "Все счастливые семьи похожи друг на друга.",
    "Chinese": "从前有一个老人坐在窗边看雪。",
}
ENGLISH = {
    "Burns": "Wee, sleekit, cow'rin, tim'rous beastie,\nO, what a panic's in thy breastie!\nThou "
    "need na start awa sae hasty,\nWi' bickering brattle!\nI wad be laith to rin an' chase thee,",
    "Chaucer": "Whan that Aprille with his shoures soote,\nThe droghte of March hath perced to the "
    "roote,\nAnd bathed every veyne in swich licour\nOf which vertu engendred is the flour;",
    "Twain": "\"Doan' hurt me—don't! I hain't ever done no harm to a ghos'. I alwuz liked dead "
    "people, en done all I could for 'em. You go en git in de river agin, whah you b'longs.\"",
    "Bronte": "'What are ye for?' he shouted. 'T' maister's down i' t' fowld. Go round by th' end "
    "o' t' laith, if ye went to spake to him.'",
    "Carroll": "'Twas brillig, and the slithy toves\nDid gyre and gimble in the wabe;\nAll mimsy "
    "were the borogoves,\nAnd the mome raths outgrabe.",
    "King James": "And Arphaxad begat Salah; and Salah begat Eber. And unto Eber were born two "
    "sons: the name of one was Peleg; for in his days was the earth divided.",
    "Trebonius": "Trebonius: mark well Metellus Cimber: Decius Brutus",
    "tokens": "`` Croak , croak , croak ! '' said the frog , and they did n't know what to say .",
    "names": "Kael'thas Sunstrider of Quel'Thalas bowed before Arthas Menethil, while Sylvanas "
    "Windrunner watched from Zul'Aman.",
    "borrowed": '"¿Cómo estás?" she asked, and he shrugged. "Bien, gracias," he said, though '
    "nothing was fine. His abuela had died in the night and the house smelled of candles.",
    "shouted": "STOP. SEND MONEY. MOTHER ILL. STOP. COME AT ONCE. STOP.",
    "chat": "lol idk wtf u mean bro, gimme 5 min ok? brb gotta feed teh cat",
}

# Relatives of English, with the words that they share with it; prose of ours, as are the others.
RELATED = {
    "Dutch": "Over de rivier was het al donker, en de wind had er geen water meer in. Er was een "
    "man met een hond, die wilde weten of het de weg naar de stad was. Hij had van het water in de "
    "put gedronken, en de vrouw was met de man mee over de brug gegaan. In de winter is het water "
    "onder de brug warm, zei ze, en dan is het hier goed.",
    "Danish": "Han havde en kniv i sin hånd og gik over for at have den under bordet. Der var en "
    "have bag huset, og der kunne de have det godt. Hun sad for enden af den og så over mod "
    "vinduet, som var til side for hende. De to mænd gik under træet, og den ene af dem sagde, at "
    "han ville have hat og frakke for at gå ud i regnen.",
}
OUR_ENGLISH = {
    "Scots": "The auld wife gaed oot tae the byre wi' her lantern, for she heard the kye lowin' in "
    "the mirk. \"Wha's there?\" she cried, but naebody gied her an answer. The wind was blawin' "
    "frae the north, and the snaw lay deep on the brae. She thocht o' her laddie that was awa' tae "
    "the fishin', and the tear was in her e'e.",
    "dialogue": "'You never said where you were going,' she told him.\n\n'I did. Twice.'\n\n'When?'"
    "\n\n'At breakfast, and again on the stairs.' He put down the case and looked at the clock. "
    "'They will be here in an hour. What would you like me to tell them?'\n\n'Nothing. "
    "Say that I have gone back to bed, and then come up with the letters.'",
}


@pytest.mark.parametrize("language", RELATED)
def test_words_that_only_english_has_do_not_take_a_relative_for_it(language: str):
    assert not _has_english_words(RELATED[language])
    assert str(not_english(RELATED[language])).startswith("not English: looks like ")
    # Nor do English words among letters of another script.
    assert not _has_english_words(f"{FOREIGN['Russian']} Вот что она сказала: the and that they")
    assert language_gate() == "py3langid-0.4.0,20words,3nats,or-0.12-the"


@pytest.mark.parametrize("kind", OUR_ENGLISH)
def test_english_is_told_by_its_words_alone(kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fabula.text.sentences._identifier", lambda: pytest.fail("opened"))
    assert not_english(OUR_ENGLISH[kind] + f"\n\n{RELATED['Danish'][:100]}") is None


SHORT = [
    "", "?!", "No.", "Bonjour, mon ami.", "Milk. Eggs. Butter. Salt.", "1 2 3 4 5", "\ud800 \x00",
    "La la la la la, tra la la la, fa la la la la!", "No no no no no.", "AAAAAAAHHH! NOOOOO!",
]  # fmt: skip


@pytest.mark.parametrize("language", FOREIGN)
def test_another_language_is_named(language: str):
    assert not_english(FOREIGN[language]) == f"not English: looks like {language}"


@pytest.mark.parametrize("kind", [*ENGLISH, *SHORT])
def test_english_of_any_kind_and_what_is_too_short_to_tell_pass(kind: str):
    assert not_english(ENGLISH.get(kind, kind)) is None


def test_the_greater_part_of_a_text_decides():
    english = "The old man sat by the window and watched the snow fall on the garden all day. " * 2
    french = FOREIGN["French"]
    assert not_english("\n\n".join([english, french, english])) is None
    most = "\n\n".join([french, english, french, french])
    assert not_english(most) == "not English: looks like French"
    # Lines of speech, each too short to tell, are told together.
    lines = "Où vas-tu ?\n\nÀ la gare.\n\nPourquoi ?\n\nMa mère arrive ce soir.\n\nElle va bien ?"
    assert not_english(lines) == "not English: looks like French"


@given(st.text(max_size=200))
def test_any_text_is_told_or_passes(text: str):
    found = not_english(text)
    assert found is None or found.startswith("not English: looks like ")


def test_no_english_of_the_shared_data_is_refused(shared_data: Path):
    """Of 6,194 whole texts none was refused; here a few of every source, and of every kind."""
    n_read = 0
    kinds = ("reference/*.gz", "human_vs_machine/*.jsonl", "generated/*.jsonl", "cbt/*.gz")
    for path in sorted(path for kind in kinds for path in shared_data.glob(kind)):
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        for row in rows[:: max(1, len(rows) // 12)]:
            text = row.get("text") or " ".join(row["sentences"][:42])
            assert not_english(text) is None, (path.name, row["id"])
            n_read += 1
    assert n_read > 150
