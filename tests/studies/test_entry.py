"""Who comes from a platform, how long a place is theirs, and what the platform says of them."""

import base64
import hmac
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.commands import invoke, rows_of
from tests.http_serving import Handler, on_loopback
from tests.studies.platform_simulation import TOKEN, MockProlific, mock_prolific, simulate
from tests.studies.running import ENDING, Make, Running, csrf, feedback_rows, hidden, save, send

from fabula.studies import platforms
from fabula.studies.app import create_app
from fabula.studies.database import assignments, now_ms, participants, tokens, visits

STUDY, OTHER = f"{7:024x}", f"{8:024x}"


def address(k: int, study: str = STUDY, **more: str) -> str:
    session = more.pop("SESSION_ID", f"{100 + k:024x}")
    extra = "".join(f"&{name}={value}" for name, value in more.items())
    return f"/join?PROLIFIC_PID={k:024x}&STUDY_ID={study}&SESSION_ID={session}{extra}"


@pytest.fixture
def made(opened: Make) -> Make:
    """Makes a study of one unit with these lines at the end of its file."""

    def make(more: str, kind: str = "ttcw", **about: object) -> Running:
        rows = None if kind == "ttcw" else feedback_rows()[:1]
        codes = "" if "[codes]" in more else '\n[codes]\ndone = "C0DE"\n'
        return opened(kind, rows, more=more + codes, **about)

    return make


def come(running: Running, k: int, **more: str) -> tuple[TestClient, Any]:
    client = TestClient(running.app, raise_server_exceptions=False)
    return client, client.get(address(k, **more))


def agree(client: TestClient, page: Any) -> Any:
    return send(client, "/consent", page, agree="yes")


def enter(running: Running, k: int) -> TestClient:
    client, page = come(running, k)
    agree(client, page)
    return client


def states(running: Running) -> list[str]:
    return running.every(assignments.c.state)


def test_a_flood_of_arrivals_does_not_fill_the_database(
    made: Make, monkeypatch: pytest.MonkeyPatch, database: str
):
    for name, most in (("WAITING", 5), ("TOKENS", 3), ("VISITS", 4)):
        monkeypatch.setattr(f"fabula.studies.platforms.MAX_{name}", most)
    running = made("[entry]\njoins_per_address = 0\n", url=database)
    reader = enter(running, 1)
    first, page = come(running, 2)
    send(TestClient(running.app), "/consent", page, agree="no")
    for number in range(3, 20):
        newest, page = come(running, number)
    kept = running.every(participants.c.platform_id)
    assert set(kept) == {f"{number:024x}" for number in (1, *range(15, 20))}
    # Who agreed is there as before, who was dropped can come again, the newest can agree.
    assert reader.get("/page/story-1").status_code == 200
    assert first.get("/").status_code == 403
    assert "I agree" in come(running, 2)[1].text
    assert agree(newest, page).status_code == 200
    assert newest.get("/page/story-1").status_code == 200
    # Clicks of one person, each as another submission.
    for number in range(20):
        last, _ = come(running, 1, SESSION_ID=f"{900 + number:024x}")
    assert running.every(tokens.c.participant_id).count(1) <= 3
    assert running.every(visits.c.participant_id).count(1) == 4
    assert reader.get("/page/story-1").status_code == last.get("/page/story-1").status_code == 200


def test_the_ids_of_a_platform_are_kept_and_exported(made: Make, tmp_path: Path):
    running = made("")
    come(running, 1)
    come(running, 1)
    TestClient(running.app).get("/join?workerId=A0B1C2D3E4&hitId=H1&assignmentId=S1")
    running.store.close()
    out = tmp_path / "people.jsonl"
    invoke("study", "export", running.design.path, "--out", tmp_path / "a.jsonl", "--people", out)
    names = ("platform_id", "platform_study", "platform_session")
    assert [tuple(row[name] for name in names) for row in rows_of(out)] == [
        (f"{1:024x}", STUDY, f"{101:024x}"), ("A0B1C2D3E4", "H1", "S1"),
    ]  # fmt: skip


def test_only_those_on_the_list_and_of_the_study_may_come(made: Make, tmp_path: Path):
    (tmp_path / "who.txt").write_text(f"{1:024x}\n")
    running = made(f'[entry]\nplatform = "prolific"\nallow = "who.txt"\nstudies = ["{STUDY}"]\n')
    assert "I agree" in come(running, 1)[1].text
    for number, study in ((2, STUDY), (1, OTHER)):
        found = come(running, number, study=study)[1]
        assert found.status_code == 403
        assert "not open to you" in found.text
    assert TestClient(running.app).get("/join?workerId=A0B1C2D3E4").status_code == 403
    # Somebody who is added while the study runs.
    (tmp_path / "who.txt").write_text(f"{1:024x}\n{2:024x}\n")
    assert "I agree" in come(running, 2)[1].text


def test_as_many_people_as_allowed_come_from_one_address_in_a_day(made: Make):
    running = made("[entry]\njoins_per_address = 2\n")

    def code(k: int, host: str = "testclient") -> int:
        return TestClient(running.app, client=(host, 5)).get(address(k)).status_code

    assert [code(k) for k in (1, 2, 1, 2)] == [200] * 4
    found = come(running, 3)[1]
    assert found.status_code == 403
    assert "Too many people" in found.text
    assert code(3, "192.0.2.7") == 200
    # A proxy that does not say whom it serves must not shut everybody out.
    assert [code(k, "127.0.0.1") for k in (4, 5, 6)] == [200] * 3
    kept = " ".join(running.every(visits.c.address))
    assert not any(address in kept for address in ("192.0.2.7", "testclient"))
    running.set(visits, at_ms=now_ms() - 25 * 3_600_000)
    assert code(7) == 200


class Signer:
    """Signs as Prolific does, by the package cryptography alone."""

    def __init__(self, n_bits: int = 2048) -> None:
        rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=n_bits)
        public = self._key.public_key().public_numbers()
        self.jwk = {"kid": "k1", "kty": "RSA", "alg": "RS256"} | {
            name: as_text(number.to_bytes((number.bit_length() + 7) // 8))
            for name, number in (("n", public.n), ("e", public.e))
        }

    def sign(self, k: int, header: dict[str, str] | None = None, **claims: Any) -> str:
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

        ids = {"PROLIFIC_PID": f"{k:024x}", "STUDY_ID": STUDY, "SESSION_ID": f"{100 + k:024x}"}
        body = {"iss": "https://www.prolific.com", "aud": "https://study.example/join",
                "exp": time.time() + 60, "prolific": ids, **claims}  # fmt: skip
        head = {"alg": "RS256", "kid": "k1"} | (header or {})
        text = ".".join(as_text(json.dumps(one).encode()) for one in (head, body))
        if head["alg"] == "HS256":
            # Algorithm confusion: the public key, which everybody knows, as a secret.
            known = self._key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            signature = hmac.digest(known, text.encode(), "sha256")
        else:
            signature = self._key.sign(text.encode(), PKCS1v15(), hashes.SHA256())
        return f"{text}.{as_text(signature)}"


def as_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@pytest.fixture(scope="module")
def signer() -> Signer:
    return Signer()


@pytest.fixture(scope="module")
def mock() -> Iterator[MockProlific]:
    with mock_prolific(STUDY) as mock:
        yield mock


def test_a_signed_address_lets_in_whom_it_was_signed_for(
    made: Make, signer: Signer, mock: MockProlific
):
    mock.keys = [signer.jwk]
    running = made(
        f'[entry]\nplatform = "prolific"\nsigned = true\naddress = "https://study.example/join"\n'
        f'api = "{mock.base}"\n'
    )
    mock.faults = [500]
    assert come(running, 1, prolific_token=signer.sign(1))[1].status_code == 503
    assert come(running, 1, prolific_token=signer.sign(1))[1].status_code == 200
    for token in (signer.sign(2), "", "a.b.c"):
        assert come(running, 1, prolific_token=token)[1].status_code == 403


def test_a_token_that_was_altered_is_not_valid(signer: Signer):
    keys, home = [signer.jwk], "https://study.example"
    good = signer.sign(1)
    assert platforms.verify_token(good, keys, home)["PROLIFIC_PID"] == f"{1:024x}"
    head, body, signature = good.split(".")
    other = signer.sign(2).split(".")[1]
    wrong = {
        "another body": f"{head}.{other}.{signature}",
        "no signature": f"{head}.{body}.",
        "a signature of ones": f"{head}.{body}.AQ",
        "an algorithm of its own": signer.sign(1, {"alg": "none"}),
        "signed with the public key": signer.sign(1, {"alg": "HS256"}),
        "of endless lists": f"{as_text(b'[' * 100_000)}.{body}.{signature}",
        "an unknown key": signer.sign(1, {"kid": "k2"}),
        "expired": signer.sign(1, exp=time.time() - 1),
        "of another issuer": signer.sign(1, iss="https://evil.example"),
        "for another study": signer.sign(1, aud="https://evil.example/join"),
        "nobody": signer.sign(1, prolific="x"),
        "no token": "x",
    }
    short = Signer(1024)
    secret = {"kid": "k1", "kty": "oct", "k": "c2VjcmV0"}
    unused = ((short.sign(1), short.jwk), (good, secret), (good, {}))
    for token, key in unused:
        with pytest.raises(ValueError, match=r"valid token|too short"):
            platforms.verify_token(token, [key], home)
    for name, token in wrong.items():
        with pytest.raises(ValueError):  # noqa: PT011 (what is said differs)
            pytest.fail(f"taken: {name}, {platforms.verify_token(token, keys, home)}")
    ahead = signer.sign(1, iat=time.time() + 5)
    assert platforms.verify_token(ahead, keys, home)["PROLIFIC_PID"] == f"{1:024x}"


def test_who_has_answered_nothing_for_minutes_gives_the_place_back(made: Make):
    running = made("", raters=1)
    first = enter(running, 1)
    form = hidden(first.get("/page/story-1"))
    assert "Nothing is left to read" in come(running, 2)[1].text
    running.set(assignments, seen_ms=now_ms() - 31 * 60_000)
    second = enter(running, 3)
    assert states(running) == ["returned", "open"]
    # The place is somebody else's: what comes late takes it from nobody.
    late = first.post("/page/story-1", data=form | {ENDING: "Yes", "go": "next"})
    assert "given to somebody else" in late.text
    assert states(running) == ["returned", "open"]
    # Who has answered keeps it for hours.
    save(second)
    running.set(assignments, seen_ms=now_ms() - 31 * 60_000)
    assert "Nothing is left to read" in come(running, 4)[1].text


def test_a_place_is_kept_through_the_quiz_and_given_back_by_who_fails(made: Make):
    running = made('[codes]\ndone = "C0DE"\nfull = "FULL"\nfailed = "FA1L"\n', "feedback", raters=1)
    first, page = come(running, 1)
    page = agree(first, page)
    assert "FULL" in come(running, 2)[1].text
    wrong = {f"quiz-{k}": q.options[0] for k, q in enumerate(running.design.quiz, 1)}
    for _ in range(2):
        page = first.post("/quiz", data={"csrf": csrf(page), **wrong})
    assert "FA1L" in page.text
    assert states(running) == ["returned"]
    assert "I agree" in come(running, 2)[1].text


def apply(running: Running, *statuses: tuple[int, str]) -> Any:
    """A number above a thousand is of a later submission by the one with the number less that."""
    ids = ((f"{100 + k:024x}", f"{k % 1000:024x}", status) for k, status in statuses)
    found = [platforms.Submission(*one) for one in ids]
    with running.store.writing() as connection:
        return platforms.apply_statuses(connection, found, [STUDY])


def state_of(running: Running, k: int) -> str:
    return dict(running.rows(participants.c.platform_id, participants.c.state))[f"{k:024x}"]


def test_returned_and_timed_out_places_reopen_at_once(made: Make):
    running = made("", raters=2)
    clients = [enter(running, k) for k in (1, 2)]
    for client in clients:
        save(client)
    assert "Nothing is left" in come(running, 3)[1].text
    done = apply(running, (1, "RETURNED"), (2, "TIMED-OUT"))
    assert (done.n_new, done.n_returned, done.n_unknown) == (2, 2, 0)
    assert apply(running, (1, "RETURNED"), (2, "TIMED-OUT")).n_new == 0
    assert "given back" in clients[0].get("/page/story-1").text
    enter(running, 3)
    # Who handed in at the platform after all goes on where a place is left.
    assert apply(running, (2, "AWAITING REVIEW")).n_new == 1
    assert state_of(running, 2) == "ready"
    assert "Tale" in clients[1].get("/").text
    assert sorted(states(running)) == ["open", "open", "returned"]


def test_who_left_does_not_get_a_place_by_agreeing_again(made: Make):
    running = made("")
    client, page = come(running, 1)
    agree(client, page)
    apply(running, (1, "RETURNED"))
    agree(client, page)
    assert (state_of(running, 1), states(running)) == ("left", ["returned"])


def test_an_earlier_submission_says_nothing_about_the_one_at_hand(made: Make):
    running = made("")
    client, _ = come(running, 1)
    agree(client, client.get(address(1, SESSION_ID=f"{1101:024x}")))
    apply(running, (1, "RETURNED"), (1001, "ACTIVE"))
    assert (state_of(running, 1), states(running)) == ("ready", ["open"])


def test_who_borrows_a_worker_s_id_is_unknown_to_the_platform(made: Make):
    running = made("")
    come(running, 1)
    running.set(visits, at_ms=now_ms() - 3_600_000)
    assert apply(running, (2, "ACTIVE")).n_unknown == 1
    assert running.every(visits.c.status) == ["UNKNOWN"]


def test_the_platform_is_asked_again_until_it_answers(mock: MockProlific):
    waited: list[float] = []
    mock.rows.clear()
    for k in range(45):
        mock.add(f"{k:024x}", f"{k:024x}")
    mock.faults = [429, 500, 503]
    prolific = platforms.Prolific(TOKEN, mock.base, wait=waited.append)
    assert len(list(prolific.submissions(STUDY))) == 45
    # As the header asks after the first, and then twice as long each time.
    assert waited == [1.0, 2.0, 4.0]
    mock.faults = [500] * 5
    nowhere = platforms.Prolific(TOKEN, "http://127.0.0.1:1", wait=waited.append)
    for one, study, said in (
        (prolific, STUDY, "after 5 tries: answered 500"),
        (platforms.Prolific("x", mock.base), STUDY, r"refuses the token \(401\)"),
        (prolific, OTHER, "answered 404"),
        (nowhere, STUDY, "refused"),
    ):
        with pytest.raises(platforms.PlatformFailed, match=said):
            list(one.submissions(study))


def returning(made: Make, mock: MockProlific) -> Running:
    """A study whose one participant has returned at the platform."""
    running = made(f'[entry]\nstudies = ["{STUDY}"]\napi = "{mock.base}"\n')
    enter(running, 1)
    mock.rows.clear()
    mock.add(f"{101:024x}", f"{1:024x}", "RETURNED")
    return running


def test_a_list_of_statuses_that_breaks_off_changes_nothing(made: Make, mock: MockProlific):
    running = returning(made, mock)
    for k in range(2, 40):
        mock.add(f"{100 + k:024x}", f"{k:024x}")
    mock.faults = [0, *[500] * 5]
    prolific = platforms.Prolific(TOKEN, mock.base, wait=lambda _: None)
    statuses = platforms.Statuses(prolific, [STUDY])
    with pytest.raises(platforms.PlatformFailed, match="answered 500"):
        statuses.fetch(running.store)
    assert states(running) == ["open"]
    done = statuses.fetch(running.store)
    assert (done.n_submissions, done.n_returned) == (39, 1)
    assert states(running) == ["returned"]


def test_a_running_server_keeps_up_with_the_platform(made: Make, mock: MockProlific):
    running = returning(made, mock)
    app = create_app(running.design, running.units, running.store, platform_token=TOKEN)
    with TestClient(app):
        until = time.monotonic() + 60
        while states(running) != ["returned"] and time.monotonic() < until:
            time.sleep(0.01)
    assert states(running) == ["returned"]
    assert app.state.study.statuses.problem == ""


def test_no_place_is_lost_or_given_twice_whatever_people_and_the_platform_do(tmp_path: Path):
    """The long form, of 10,000 events, is `bench/places.py`."""
    out = simulate(tmp_path, 250, seed=1)
    assert (out.over_filled, out.lost, out.errors) == ([], [], [])
    assert out.n_filled == out.n_places
    # All of it happened.
    assert out.n_told_full > 5
    assert {429, 500, 503} <= set(out.answered)
    assert len(out.events) == 15


def test_a_token_of_the_platform_follows_no_redirect():
    seen: list[str] = []

    class Elsewhere(Handler):
        def do_GET(self) -> None:  # noqa: N802
            seen.append(self.path)
            self.reply(302, headers={"location": "/elsewhere"})

    with on_loopback(Elsewhere) as url, pytest.raises(platforms.PlatformFailed, match="302"):
        list(platforms.Prolific("token", url).submissions("s"))
    assert len(seen) == 1
