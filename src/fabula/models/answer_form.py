"""The form of an answer, in the languages in which models are told of it.

A form is described to the model in words, to a provider as a JSON schema, and to llama.cpp as a
grammar (GBNF: https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md). Some models
give the probabilities of their tokens, and so of the options of a choice.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from fabula.models.base import Choice, Form, RecordField


def in_words(form: Form) -> str:
    """The request for JSON, which comes after the question."""
    if isinstance(form, Choice):
        first, second = _fields(form)
        return (
            f"Write the answer as a JSON object with the fields {first} and {second}, in this "
            "order."
        )
    *most, last = (f"{one.name} ({one.about})" for one in form.fields)
    return (
        f"Instead of lines, write one JSON object: its field {form.name} is a list of objects with "
        f"the fields {', '.join(most)} and {last}, in this order. The list is empty if there is "
        "nothing to say."
    )


def schema_of(form: Form) -> dict[str, Any]:
    """The JSON schema of an answer."""
    if isinstance(form, Choice):
        verdict = {"type": "string", "enum": list(form.options)}
        return _object(
            {name: {"type": "string"} if name == "reason" else verdict for name in _fields(form)}
        )
    record = _object(
        {
            one.name: {"type": "integer", "enum": list(one.numbers)}
            if one.numbers
            else {"type": "string"}
            for one in form.fields
        }
    )
    return _object({form.name: {"type": "array", "items": record}})


def grammar_of(form: Form) -> str:
    """The form as a grammar.

    A choice is `Yes. Reason`, or a line of reasons and `Verdict: Yes`; records are JSON.
    """
    if isinstance(form, Choice):
        options = " | ".join(map(json.dumps, form.options))
        if form.is_first:
            return f'root ::= ({options}) ". " [^\\n]{{1,{form.reason_chars}}}'
        label = json.dumps(f"\n{form.label}: ")
        return f"root ::= [^\\n]{{1,{form.reason_chars}}} {label} ({options})"
    fields = ' ", " '.join(f"{_key(one.name)} {one.name}" for one in form.fields)
    more = f' (", " record){{0,{form.n_most - 1}}}' if form.n_most > 1 else ""
    return "\n".join(
        [
            f'root ::= "{{" {_key(form.name)} "[" (record{more})? "]}}"',
            f'record ::= "{{" {fields} "}}"',
            *(_value_rule(one) for one in form.fields),
            r'character ::= [^"\\\x00-\x1f] | "\\" ["\\/nt]',
        ]
    )


def _fields(choice: Choice) -> tuple[str, str]:
    """The fields of a choice, in the order in which they should be written."""
    verdict = choice.label.lower()
    return (verdict, "reason") if choice.is_first else ("reason", verdict)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _value_rule(one: RecordField) -> str:
    if one.numbers:
        numbers = " | ".join(f'"{k}"' for k in one.numbers)
        return f"{one.name} ::= {numbers}"
    return f'{one.name} ::= "\\"" character{{1,{one.n_chars}}} "\\""'


def _key(name: str) -> str:
    """The key of a field, as a literal of the grammar."""
    return json.dumps(f"{json.dumps(name)}: ")


Position = tuple[str, Sequence[tuple[str, float]]]
"""A token of the answer, and its alternatives with their log-probabilities."""


def option_masses(positions: Iterable[Position], choice: Choice) -> dict[str, float]:
    """The probability mass of each option at the verdict; empty if the verdict is not found.

    The verdict is the first token that is an option, or the last one if reasons come first.
    Spellings of an option (`Yes`, ` yes`, `YES.`) add up. The masses do not sum to 1: the rest is
    for other tokens. Options of several words have none: their first token may begin another
    answer.
    """
    if any(" " in option for option in choice.options):
        return {}
    folded = {option.casefold(): option for option in choice.options}
    tokens = list(positions)
    for token, alternatives in tokens if choice.is_first else reversed(tokens):
        if _plain(token) not in folded or not alternatives:
            continue
        masses = dict.fromkeys(choice.options, 0.0)
        for other, logprob in alternatives:
            option = folded.get(_plain(other))
            if option is not None:
                # A log-probability is at most 0, whatever a server says.
                masses[option] += math.exp(min(0.0, logprob)) if not math.isnan(logprob) else 0.0
        return masses
    return {}


def _plain(token: str) -> str:
    return token.strip(" \n\t\u0120\u2581.,:;*\"'").casefold()
