"""Measure creative writing: what is borrowed, what works, what a reader would miss.

    import fabula as fb

    fb.reference_build("books/", out="books.ref")
    scores = fb.originality("drafts/", reference="books.ref")
    fb.report("drafts/", reference="books.ref").save("report.html")

Texts are frames (pandas, Polars, Arrow), datasets, lists, mappings from id to text, files or
folders. Every command is a function here: `fabula judge correct` is `judge_correct`, `--top 5` is
`top=5`. Results print, save themselves (`save("x.csv")`), and convert to a frame (`frame()`). Names
not listed here are internal and may change between versions.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fabula.core import __version__ as __version__

_PLACES = {
    "fabula.core.errors": (
        "BusyError CallFailed CorpusError FabulaError InputError LookupFailed MixError "
        "ModelError WorkersEnded"
    ),
    "fabula.core.frames": "to_arrow to_pandas to_polars",
    "fabula.jobs.given": "read",
    "fabula.jobs.registry": "register",
    "fabula.jobs.result": "Result",
    "fabula.models.base": "FunctionModel",
    "fabula.reference.search": "Reference",
    "fabula.rubrics.load": "load_rubric",
    "fabula.core.scales": "Scale",
    "fabula.core.settings": "Settings SettingsError setting",
    "fabula.core.types": "Document Estimate Item Measurement Rubric Signature Span",
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Load names lazily (PEP 562): `import fabula` itself imports nothing heavy."""
    if name == "__all__":
        return __dir__()
    if name in _PLACE_OF:
        found = getattr(import_module(_PLACE_OF[name]), name)
    elif name.startswith("_"):
        raise AttributeError(f"module 'fabula' has no attribute {name!r}")
    else:
        face = import_module("fabula.api")
        job = face.job_named(name)
        if job is None:
            raise AttributeError(f"module 'fabula' has no attribute {name!r}")
        found = face.function_of(job)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    jobs = import_module("fabula.jobs.registry").jobs()
    return sorted(["__version__", *_PLACE_OF, *(job.python for job in jobs.values())])
