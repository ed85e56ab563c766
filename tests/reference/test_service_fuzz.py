"""The service under requests made from its own description: it never breaks, and keeps its word."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.reference.test_service_limits import NEAR
from tests.reference_serving import TOKEN, Serving, serving_reference

from fabula.core.types import Document
from fabula.reference.client import Limits
from fabula.reference.search import Reference

schemathesis = pytest.importorskip("schemathesis", reason="it is not installed")

CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_headers_conformance", "response_schema_conformance",
)  # fmt: skip
AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}


def bounded(n_examples: int) -> settings:
    """The same requests each time, and so many of each kind."""
    return settings(
        max_examples=n_examples, derandomize=True, deadline=None, database=None,
        phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("fuzz") / "sea"
    held = [Document(f"d{k}", f"the sea was calm {k}") for k in range(6)]
    Reference.build(held, path, shard_tokens=12)
    limits = Limits(max_words=300, n_per_s=0, n_at_once=1)
    with serving_reference(path, limits=limits) as serving:
        yield serving


@pytest.fixture(scope="module")
def described(serving: Serving) -> Any:
    document = httpx.get(f"{serving.url}/openapi.json", headers=AUTHORISED).json()
    return schemathesis.openapi.from_dict(document)


OPERATIONS = [
    ("/health", "GET"), ("/metrics", "GET"), ("/v1/about", "GET"), ("/v1/documents", "POST"),
    ("/v1/find", "POST"), ("/v1/ids", "POST"), ("/v1/match", "POST"), ("/v1/near", "POST"),
    ("/v1/words", "POST"),
]  # fmt: skip


def test_every_endpoint_is_among_those_that_are_tried(described: Any):
    paths = described.raw_schema["paths"]
    found = [(path, method.upper()) for path in paths for method in paths[path]]
    assert sorted(found) == OPERATIONS


def mended(body: Any, state: str) -> Any:
    """With the state and the name that nobody guesses: else requests all end at the same place."""
    if isinstance(body, dict):
        if isinstance(body.get("state"), str):
            body["state"] = state
        if "terms" in body and len(str(body)) % 2:
            # A text that can be compared, but for one field as it was drawn.
            name = sorted(NEAR)[len(str(body)) % len(NEAR)]
            body |= {**NEAR, name: body.get(name, NEAR[name])} if len(str(body)) % 3 else NEAR
        elif "shard" in body and len(str(body)) % 2:
            body |= {"shard": 0, "first": 1}
    return body


@pytest.mark.parametrize(("address", "method"), OPERATIONS)
def test_every_answer_is_as_the_service_describes_it(
    described: Any, serving: Serving, address: str, method: str
):
    schemathesis.checks.load_all_checks()
    checks = schemathesis.checks.CHECKS.get_by_names(CHECKS)
    state = serving.served.now.key
    seen: Counter[int] = Counter()

    @bounded(25 if method == "POST" else 2)
    @given(described[address][method].as_strategy())
    def ask(case: Any) -> None:
        case.body = mended(case.body, state)
        reply = case.call(base_url=serving.url, headers=AUTHORISED)
        case.validate_response(reply, checks=checks)
        seen[reply.status_code] += 1

    ask()
    assert seen[200], seen
    assert not seen[401], seen


@pytest.mark.parametrize(("address", "method"), [one for one in OPERATIONS if one[1] == "POST"])
def test_what_is_against_the_description_is_refused(
    described: Any, serving: Serving, address: str, method: str
):
    negative = schemathesis.GenerationMode.NEGATIVE
    seen: Counter[int] = Counter()

    @bounded(15)
    @given(described[address][method].as_strategy(generation_mode=negative))
    def ask(case: Any) -> None:
        headers = {**AUTHORISED, **dict(case.headers or {})}
        reply = case.call(base_url=serving.url, headers=headers | AUTHORISED)
        assert reply.status_code < 500, reply.text
        assert set(reply.json()) == {"error"} or reply.status_code == 200
        seen[reply.status_code] += 1

    ask()
    assert seen[422] + seen[400], seen
