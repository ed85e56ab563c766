"""Measure creative writing: what is borrowed, what works, what a reader would miss.

    import fabula as fb

    library = fb.build("books/", "books.ref")
    scores = fb.originality("drafts/", library)
    fb.report("drafts/", library).save("report.html")

Texts are frames (pandas, Polars, Arrow), lists, mappings from id to text, files or folders. Each
function does the same as the command of its name and takes the same settings. Results can be
printed (or shown in a notebook), saved, and converted to a frame (`wide()`). Names not listed here
are internal and may change between versions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fabula.api import detect as detect
    from fabula.api.functions import agreement as agreement
    from fabula.api.functions import book as book
    from fabula.api.functions import build as build
    from fabula.api.functions import compare as compare
    from fabula.api.functions import compare_judges as compare_judges
    from fabula.api.functions import correct as correct
    from fabula.api.functions import diversity as diversity
    from fabula.api.functions import find_faults as find_faults
    from fabula.api.functions import judge as judge
    from fabula.api.functions import key_phrases as key_phrases
    from fabula.api.functions import open_reference as open_reference
    from fabula.api.functions import originality as originality
    from fabula.api.functions import plan as plan
    from fabula.api.functions import profile as profile
    from fabula.api.functions import read as read
    from fabula.api.functions import report as report
    from fabula.api.results import Agreement as Agreement
    from fabula.api.results import Books as Books
    from fabula.api.results import Comparison as Comparison
    from fabula.api.results import Corrected as Corrected
    from fabula.api.results import Detector as Detector
    from fabula.api.results import FoundFaults as FoundFaults
    from fabula.api.results import JudgeComparison as JudgeComparison
    from fabula.api.results import Plan as Plan
    from fabula.api.results import Profiles as Profiles
    from fabula.api.results import Report as Report
    from fabula.api.results import Scores as Scores
    from fabula.api.results import Verdicts as Verdicts
    from fabula.api.sets import Diversity as Diversity
    from fabula.api.sets import KeyPhrases as KeyPhrases
    from fabula.errors import BusyError as BusyError
    from fabula.errors import CallFailed as CallFailed
    from fabula.errors import CorpusError as CorpusError
    from fabula.errors import FabulaError as FabulaError
    from fabula.errors import InputError as InputError
    from fabula.errors import LookupFailed as LookupFailed
    from fabula.errors import MixError as MixError
    from fabula.errors import ModelError as ModelError
    from fabula.errors import WorkersEnded as WorkersEnded
    from fabula.frames import to_arrow as to_arrow
    from fabula.frames import to_pandas as to_pandas
    from fabula.frames import to_polars as to_polars
    from fabula.models.base import FunctionModel as FunctionModel
    from fabula.reference import Reference as Reference
    from fabula.rubrics.load import load_rubric as load_rubric
    from fabula.scales import Scale as Scale
    from fabula.settings import SettingsError as SettingsError
    from fabula.types import Document as Document
    from fabula.types import Estimate as Estimate
    from fabula.types import Item as Item
    from fabula.types import Measurement as Measurement
    from fabula.types import Rubric as Rubric
    from fabula.types import Signature as Signature
    from fabula.types import Span as Span

__version__ = "0.1.0"

_PLACES = {
    "fabula.api": "detect",
    "fabula.api.functions": (
        "agreement book build compare compare_judges correct diversity find_faults judge "
        "key_phrases open_reference originality plan profile read report"
    ),
    "fabula.api.results": (
        "Agreement Books Comparison Corrected Detector FoundFaults JudgeComparison Profiles "
        "Plan Report Scores Verdicts"
    ),
    "fabula.api.sets": "Diversity KeyPhrases",
    "fabula.errors": (
        "BusyError CallFailed CorpusError FabulaError InputError LookupFailed MixError "
        "ModelError WorkersEnded"
    ),
    "fabula.frames": "to_arrow to_pandas to_polars",
    "fabula.models.base": "FunctionModel",
    "fabula.reference": "Reference",
    "fabula.rubrics.load": "load_rubric",
    "fabula.settings": "SettingsError",
    "fabula.types": "Document Estimate Item Measurement Rubric Scale Signature Span",
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names.split()}

__all__ = ["__version__", *sorted(_PLACE_OF)]


def __getattr__(name: str) -> Any:
    """Load names lazily (PEP 562): `import fabula` itself imports nothing heavy."""
    if name not in _PLACE_OF:
        raise AttributeError(f"module 'fabula' has no attribute {name!r}")
    place = import_module(_PLACE_OF[name])
    found = import_module("fabula.api.detect") if name == "detect" else getattr(place, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
