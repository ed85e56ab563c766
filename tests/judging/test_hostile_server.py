"""Whatever a server does, no verdict is made of what holds none."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from tests.judging.judged_stories import ALONE, rubric_text
from tests.serving import Reply, completion, prompt_of, serving

from fabula.core.types import Document
from fabula.judging.plan import JudgePlan
from fabula.judging.prompts import Template
from fabula.judging.session import Session, run_session
from fabula.rubrics.load import parse_rubric

RUBRIC = parse_rubric(rubric_text("one", {"warm": "Is it warm?"}).encode(), "one.toml")


def said(text: Any, finish: str = "stop", **message: Any) -> Reply:
    """A completion of this content, whatever it is, with more fields in its message."""
    body = completion("", finish)
    body["choices"][0]["message"] |= {"content": text, **message}
    return 200, body


def changed(text: str, **fields: Any) -> Reply:
    return 200, completion(text) | fields


def without(*path: str | int) -> Reply:
    """A completion that says Yes, without one of its fields."""
    body: Any = completion("Yes. Warm.")
    place = body
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    return 200, body


def error(status: int) -> Reply:
    return status, {"error": {"message": "Yes. Verdict: Yes", "type": "error"}}


NO_TOOL = {"id": "c", "type": "function",
           "function": {"name": "verdict", "arguments": '{"verdict": "Yes"}'}}  # fmt: skip
WHOLE = json.dumps(completion("Yes. Warm.")).encode()

# The reply, and the only verdict that may be read in it; None where there is none.
MODES: dict[str, tuple[Reply, float | None]] = {
    "an empty answer": ("", None),
    "no content": (said(None), None),
    "a number for content": (said(1), None),
    "an object for content": (said({"verdict": "Yes"}), None),
    "no parts": (said([]), None),
    "parts without text": (said([{"type": "image_url", "image_url": {"url": "x"}}]), None),
    "parts of text": (
        said([{"type": "text", "text": "No. "}, {"type": "text", "text": "Cold."}]), 0.0),
    "no choices": (changed("Yes.", choices=[]), None),
    "null choices": (changed("Yes.", choices=None), None),
    "choices that are text": (changed("Yes.", choices="Yes"), None),
    "no field of choices": (without("choices"), None),
    "no message": (without("choices", 0, "message"), None),
    "no content field": (without("choices", 0, "message", "content"), None),
    "no reason to stop": (without("choices", 0, "finish_reason"), 1.0),
    "no usage": (without("usage"), 1.0),
    "no model": (without("model"), 1.0),
    "cut after its verdict": (said("Yes", "length"), None),
    "cut before its verdict": (said("The story opens with", "length"), None),
    "cut in its reason": (said("No. The story is", "length"), 0.0),
    "withheld": (said("Yes. Warm.", "content_filter"), None),
    "withheld and empty": (said("", "content_filter"), None),
    "a refusal field": (said(None, refusal="I can't help with that."), None),
    "a call of a tool": (said(None, "tool_calls", tool_calls=[NO_TOOL]), None),
    "thinking alone": (said("", reasoning_content="Yes. It is warm. Verdict: Yes"), None),
    "thinking against the answer": (said("No. Cold.", reasoning_content="Yes."), 0.0),
    "thinking in tags alone": ("<think>Yes. It is warm.</think>", None),
    "thinking before the answer": ("<think>Yes?</think>No. Cold.", 0.0),
    "a refusal": ("I'm sorry, but I can't judge this story.", None),
    "a page of a proxy": ((200, b"<html><body>Yes. Sign in.</body></html>"), None),
    "plain text": ((200, b"Yes. Warm."), None),
    "an empty body": ((200, b""), None),
    "half a body": ((200, WHOLE[: len(WHOLE) // 2]), None),
    "a body of null": ((200, b"null"), None),
    "a list for a body": ((200, b'["Yes"]'), None),
    "an error with status 200": ((200, {"error": {"message": "Yes", "code": 500}}), None),
    "an event stream": ((200, b"data: " + WHOLE + b"\n\ndata: [DONE]\n\n"), None),
    "a body that is no UTF-8": ((200, b'{"choices": "\xff\xfeYes"}'), None),
    "a long answer": ("No. " + "cold " * 10_000, 0.0),
    "both verdicts": ("Yes. No.", None),
    "a negative usage": (changed("No. Cold.", usage={"prompt_tokens": -5}), 0.0),
    "two choices": (changed("Yes. Warm.", choices=[
        {"index": 0, "message": {"role": "assistant", "content": one}, "finish_reason": "stop"}
        for one in ("Yes. Warm.", "No. Cold.")]), 1.0),
    **{f"status {code}": (error(code), None)
       for code in (400, 408, 409, 413, 418, 422, 429, 500, 502, 503, 504, 529)},
}  # fmt: skip


@pytest.mark.parametrize("style", ["verdict-first", "reason-first"])
def test_a_server_in_any_mode_is_given_no_verdict_that_it_did_not_say(style: Any):
    # A sound answer before every five others, for a run ends after many failures in a row.
    modes = [
        mode
        for k in range(0, len(MODES), 5)
        for mode in (("sound", ("Yes. Warm.\nVerdict: Yes", 1.0)), *list(MODES.items())[k : k + 5])
    ]
    stories = [Document(f"s{k}", f"Story number {k}.") for k in range(len(modes))]

    def answer(body: dict[str, Any], _: int) -> Reply:
        found = re.search(r"Story number (\d+)\.", prompt_of(body))
        assert found
        return modes[int(found[1])][1][0]

    plan = JudgePlan(RUBRIC, Template(style), max_tokens=200)
    with serving(answer) as server:
        session = Session(stories, [f"{server.url}/v1#m"], plan, options=ALONE)
        found, _ = run_session(replace(session, max_unreadable=0))
    values = {name: one for (name, _), one in zip(modes, found, strict=True)}
    wrong = {name: one.value for (name, (_, allowed)), one in zip(modes, found, strict=True)
             if one.value not in (allowed, None)}  # fmt: skip
    assert wrong == {}
    assert values["sound"].value == 1
    assert all(one.value is not None or one.missing_reason for one in found)
    if style == "verdict-first":
        # What is said in an odd way is read, but where the provider's client refuses the reply.
        sound = {name for name, (_, allowed) in modes if allowed is not None}
        assert sound - {"no model", "a negative usage"} <= {
            name for name, one in values.items() if one.value is not None
        }
        assert values["parts of text"].rationale == "Cold."
        assert values["cut in its reason"].details["rationale_is_cut"]
        assert values["withheld"].missing_reason == "blocked"
