"""The page's own words: all in the catalogue, in every language, with and without the script."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from string import Formatter
from typing import Any, get_args

import pytest
from jinja2 import Environment
from markupsafe import Markup
from starlette.testclient import TestClient
from tests.studies.running import Make, Running, filled, onward, save, send, two_texts

from fabula.core.types import Item, Rubric
from fabula.rubrics.load import load_rubric
from fabula.studies import labels as catalogues
from fabula.studies.app import create_app
from fabula.studies.database import StoreFailed
from fabula.studies.design import AboutQuestion, Codes, Example, QuizQuestion, StudyDesign, Texts
from fabula.studies.labels import ENGLISH, Labels, Language, load_labels
from fabula.studies.study_engine import open_store
from fabula.studies.views import STATIC

FOLDER = Path(catalogues.__file__).with_name("languages")
TEMPLATES = FOLDER.parent / "templates"
OF_ORGANISERS = {"invitations", "login", "organise", "people", "sure"}
SHOWN = ("aria-label", "title", "placeholder", "alt")


def placeholders(label: Any) -> set[str | None]:
    texts = label.values() if isinstance(label, dict) else [label]
    return {name for text in texts for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("language", get_args(Language))
def test_every_catalogue_has_the_keys_and_values_of_the_english_one(language: Language):
    own = load_labels(language)
    assert own.language == language
    assert set(own.words) == set(ENGLISH.words)
    for key in set(own.words) - {"items", "answers"}:
        assert placeholders(own.words[key]) == placeholders(ENGLISH.words[key])
    for table in ("items", "answers"):
        assert set(ENGLISH.words[table]) <= set(own.words[table])
    asked = load_rubric("preference")
    assert (own.rubric(asked) == asked) == (language == "en")
    for item in asked.items:
        assert (own.item(item).question == item.question) == (language == "en")
        for answer in item.scale.answers:
            assert (own.answer(answer) == answer) == (language == "en")
    for trouble in ("locked", "full", "failed"):
        assert str(StoreFailed(trouble)) == ENGLISH(trouble)  # type: ignore[arg-type]


class Seen(HTMLParser):
    """What a page shows or says aloud."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_data(self, data: str) -> None:
        self.found.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in SHOWN and value]


@pytest.mark.parametrize(
    "path", [p for p in sorted(TEMPLATES.iterdir()) if p.name.split(".")[0] not in OF_ORGANISERS],
    ids=lambda path: path.name.split(".")[0],
)  # fmt: skip
def test_no_template_of_participants_holds_words(path: Path):
    tokens = list(Environment().lex(path.read_text(encoding="utf-8")))
    html = "".join(value for _, kind, value in tokens if kind == "data")
    assert [text for text in Seen(html).found if re.search(r"[^\W\d_]", text)] == []
    strings = [value[1:-1] for _, kind, value in tokens if kind == "string"]
    assert [text for text in strings if re.search(r"[A-Z]|\w \w", text)] == []


def test_no_script_of_participants_holds_words():
    code = re.sub(r"(?m)//.*$", "", STATIC["study.js"][0].read_text(encoding="utf-8"))
    literals = [found[2] for found in re.finditer(r"""(["'`])((?:(?!\1).)*)\1""", code)]
    assert len(literals) > 10
    assert [text for text in literals if re.search(r"\b[A-Z][a-z]|…| of ", text)] == []
    assert set(re.findall(r'label\("(\w+)"', code)) == set(ENGLISH.for_script())


class Marked(Labels):
    """The English labels between brackets, so that what is no label stands out."""

    def __call__(self, key: str, **values: object) -> str:
        return f"⟦{super().__call__(key, **values)}⟧"

    def marked(self, key: str, **values: object) -> Markup:
        return Markup("⟦") + super().marked(key, **values) + Markup("⟧")

    def answer(self, answer: str) -> str:
        return f"⟦{answer}⟧"

    def item(self, item: Item) -> Item:
        return replace(item, title=f"⟦{item.title}⟧", question=f"⟦{item.question}⟧")


def in_greek(rubric: Rubric) -> Rubric:
    """A rubric whose words no label has: what is shown of it is nobody's label."""
    words = {"title": "Α", "question": "Β", "background": "", "dimension": ""}
    return replace(rubric, items=tuple(replace(item, **words) for item in rubric.items))


def unlabelled(html: str) -> list[str]:
    """The words of a page that are neither Greek nor of a label, but for a participant's name."""
    text = "\n".join(Seen(html).found)
    while (less := re.sub("⟦[^⟦⟧]*⟧", "", text)) != text:
        text = less
    return re.findall(r"[A-Za-z]+", re.sub(r"\bp\d{4}\b", "", text))


def marked_study(opened: Make, folder: Path, kind: Any) -> Running:
    words = {"text", "story", "original", "feedback"}
    rows = [
        row | dict.fromkeys(words & row.keys(), f"Γ {k}") for k, row in enumerate(two_texts(kind))
    ]
    if kind == "feedback":
        rows[1]["original"] = "Δ"
    made = opened(kind, rows)
    people = made.design.people.model_copy(update={
        "tutorial": (Example(text="Ε", question="Ε", answer="Ε", why="Ε"),),
        "about": (AboutQuestion(id="years", question="Ζ", low=1, high=99, required=True),),
        "codes": Codes(done="7"),
    })  # fmt: skip
    say = Marked(ENGLISH.words)
    design: StudyDesign = replace(
        made.design, title="Η", labels=say, rubric=in_greek(made.design.rubric), people=people,
        group_rubric=made.design.group_rubric and say.rubric(made.design.group_rubric),
        texts=Texts(welcome="Θ", consent="Ι", instructions="Κ", thanks="Λ", contact="Μ"),
        quiz=(QuizQuestion(text="Ν", question="Ν", options=("Ξ", "Ο"), answer="Ο", why="Π"),),
        quiz_pass=1,
    )  # fmt: skip
    store = open_store(design, made.units, f"sqlite:///{folder / 'marked.db'}")
    return Running(design, made.units, store, create_app(design, made.units, store))


@pytest.mark.parametrize("kind", ["ttcw", "feedback", "pairs"])
def test_every_word_that_people_see_is_a_label(opened: Make, tmp_path: Path, kind: Any):
    study = marked_study(opened, tmp_path, kind)
    reader = study.visitor()
    seen: dict[str, str] = {}

    def look(name: str, page: Any) -> Any:
        seen[name] = page.text
        return page

    def press(name: str, where: str, page: Any, /, **more: str) -> Any:
        return look(name, send(reader, where, page, **more))

    page = look("welcome", reader.get("/"))
    page = press("declined", "/consent", page, agree="no")
    page = press("welcome again", "/consent", page)
    page = press("tutorial", "/consent", page, agree="yes")
    page = press("quiz", "/tutorial", page)
    page = press("quiz again", "/quiz", page, **{"quiz-1": "Ξ"})
    press("passed", "/quiz", page, **{"quiz-1": "Ο"})
    page = look("about", reader.get("/"))
    press("about, wrong", "/about", page, **{"about:years": "x"})
    press("begin", "/about", page, **{"about:years": "50"})
    for step in range(9):
        page = look(f"page {step}", reader.get("/" if not step else page.url.path))
        if 'name="unit"' not in page.text:
            break
        where = page.url.path
        long = {name: "x" * 9000 for name, text in filled(page, "long").items() if text == "long"}
        press(f"wrong {step}", where, page, **long, go="finish")
        page = press(f"sent {step}", where, page, **filled(page, "Α Β Γ Δ Ε"))
        if page.url.path == where:
            page = press(f"on {step}", where, page, **filled(page, "Α Β Γ Δ Ε"), **onward(page))
    for path in ("/open", "/", "/nowhere", "/withdraw"):
        stop = look(path, reader.get(path))
    look("stranger", TestClient(study.app).get("/"))
    with study.store.writing():
        study.store._is_stuck = True
        press("locked", "/consent", stop)
    look("other", TestClient(study.app).get(f"/join?PROLIFIC_PID={7:024x}&STUDY_ID=1"))
    study.store.close()
    assert "⟦Your completion code" in seen["/"]
    assert f"⟦{ENGLISH('kept_on_page')}⟧" in seen["locked"]
    assert {name: found for name, html in seen.items() if (found := unlabelled(html))} == {}


def test_a_study_in_german_keeps_the_same_answers(opened: Make):
    study = opened("ttcw", language="de")
    assert study.design.digest != replace(study.design, labels=ENGLISH).digest
    assert study.design.texts.contact == "die Person, die Sie eingeladen hat"
    assert study.design.texts.thanks.startswith("Vielen Dank. Alle Ihre Antworten")
    reader = study.visitor()
    page = reader.get("/")
    assert "Ich stimme zu und mache weiter" in page.text
    send(reader, "/consent", page)
    page = reader.get("/page/story-1")
    assert '<html lang="de">' in page.text
    assert "<span>Ja</span>" in page.text
    said = json.loads(re.findall(r'data-labels="([^"]*)"', page.text)[0].replace("&#34;", '"'))
    assert said["done_of"] == "{done} von {of}"
    assert save(reader)["problems"] == {}
    assert list(study.given().values()) == [1.0]
    page = send(reader, "/page/story-1", page, go="")
    assert "Bitte begründen Sie Ihre Antwort in mindestens 4 Wörtern." in page.text
    assert "Diese Seite gibt es nicht." in reader.get("/nowhere").text
