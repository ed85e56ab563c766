"""How to measure a draft, from the desk's form, and where its text is then sent."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fabula.errors import InputError
from fabula.instruments import names_of_parts
from fabula.jobs.models import NoModelSettings
from fabula.jobs.report import ReportSettings
from fabula.reference.search import index_url, is_looked_up, is_served
from fabula.types import Part

_BOXES = ("near", "exclude_copies", "fluency", "verdicts", "feedback")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_OWN_MACHINE = {"ollama", "vllm", "sglang", "hf", "llama-cpp-python"}


@dataclass(frozen=True, slots=True)
class Asked:
    """The contents of the form. `model` is empty if no model is to be used."""

    reference: str = ""
    model: str = ""
    near: bool = False
    exclude_copies: bool = False
    fluency: bool = False
    verdicts: bool = True
    feedback: bool = True
    readings: int = 3

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Asked:
        """From a form, in which unticked boxes are absent. Raises `InputError`."""
        readings = str(given.get("readings", "3"))
        if not (readings.isdecimal() and len(readings) < 3 and 1 <= int(readings) <= 20):
            raise InputError("readings: must be a number from 1 to 20")
        return cls(
            reference=str(given.get("reference", "")).strip(),
            model=_model_of(given),
            readings=int(readings),
            **{box: given.get(box) in ("on", True) for box in _BOXES},
        )

    def settings(self, n_jobs: int, keep: Path | None = None) -> ReportSettings:
        """The requested report; models' answers are cached in `keep`."""
        chosen: dict[Part, bool] = {"verdicts": self.verdicts, "feedback": self.feedback}
        return ReportSettings(
            references=(self.reference,) if self.reference else (),
            match="near" if self.near else "verbatim",
            exclude="auto" if self.exclude_copies else "none",
            models=NoModelSettings((self.model,) if self.model else ()),
            style="verdict-first" if self.model == "local" else "reason-first",
            n_samples=self.readings,
            without=tuple(part for part, is_wanted in chosen.items() if not is_wanted),
            with_=("fluency",) if self.fluency else (),
            n_jobs=n_jobs,
            keep=keep,
        )


OTHER = "other"
"""The form's value if the model is named in the adjacent field."""


def _model_of(given: Mapping[str, Any]) -> str:
    """The model of a form: one from its list, or a name prefixed by its provider.

    Raises `InputError`.
    """
    chosen, name = (str(given.get(field, "")).strip() for field in ("model", "model_name"))
    if chosen != OTHER and not chosen.endswith("/"):
        return chosen
    if not name:
        raise InputError("Enter the model's name, as its provider spells it, or choose none.")
    return name if chosen == OTHER else chosen + name.removeprefix(chosen)


def chosen_model(model: str, listed: Sequence[str]) -> tuple[str, str]:
    """A model as the form shows it: the choice from its list, and the name next to it."""
    if not model or model in listed:
        return model, ""
    provider, slash, name = model.partition("/")
    return (provider + slash, name) if provider + slash in listed else (OTHER, model)


def quick_settings(
    asked: Asked, parts: Sequence[str], kinds_without: Sequence[str], n_jobs: int
) -> ReportSettings:
    """The same for some parts only, without some notes; no text leaves this machine for them."""
    here = replace(asked, model="", fluency=False)
    if where_to(here):
        here = replace(here, reference="")
    without = tuple(one for one in names_of_parts() if one not in parts)
    return replace(here.settings(n_jobs), without=(*without, *kinds_without))


def where_to(asked: Asked) -> list[str]:
    """What leaves this machine and where it goes, one sentence each; empty if nothing does."""
    told = []
    is_index = is_looked_up(asked.reference)
    index = _host(index_url(asked.reference)) if is_index else "localhost"
    if index not in _LOOPBACK:
        told.append(f"runs of words from the draft are sent to {index}, to be looked up there")
    served = _host(asked.reference) if is_served(asked.reference) else "localhost"
    if served not in _LOOPBACK:
        told.append(f"all words of the draft are sent to {served}, to be looked up there")
    if (to := _model_host(asked.model)) and (asked.verdicts or asked.feedback):
        told.append(f"the whole draft is sent to {to}, with the questions about it")
    return told


def _host(url: str) -> str:
    """The host of an address; the whole address if it cannot be parsed."""
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return url


def _model_host(model: str) -> str:
    """The provider of a model; empty if it runs on this machine."""
    if not model or model == "local" or model.lower().endswith(".gguf"):
        return ""
    if model.startswith(("http://", "https://")):
        host = _host(model)
        return "" if host in _LOOPBACK else host
    if model.startswith("replay:"):
        return ""
    provider = model.partition("/")[0]
    # The address that the user configured for the provider's client.
    url = os.environ.get(f"{provider.upper().replace('-', '_')}_BASE_URL", "")
    if url and (named := _host(url)):
        return "" if named in _LOOPBACK else named
    return "" if provider in _OWN_MACHINE else provider
