"""The signatures of `import fabula` for editors and type checkers.

python -m fabula.api.stub > src/fabula/__init__.pyi
"""

from __future__ import annotations

import inspect
import textwrap

import fabula
from fabula.api.face import function_of
from fabula.jobs.registry import OTHERS, sections

_HEAD = """# Generated from the jobs by `make docs`.
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from fabula.models.base import AskFunction
"""


def stub() -> str:
    """The text of `__init__.pyi`."""
    built_in = [job for name, own in sections().items() if name != OTHERS for job in own]
    functions = [function_of(job) for job in built_in]
    results = {inspect.signature(one).return_annotation for one in functions}
    imports = [f"from {kind.__module__} import {kind.__name__}" for kind in results]
    imports += [
        f"from {place} import {name} as {name}"
        for place, names in vars(fabula)["_PLACES"].items()
        for name in names.split()
    ]
    parts = [_HEAD + "\n".join(sorted(set(imports))), "Texts = Any\n__version__: str"]
    parts += [_told(one) for one in functions]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _told(function: object) -> str:
    """A function with its signature and help."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    lines = []
    is_named = False
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not is_named:
            is_named = True
            lines.append("    *,")
        default = "" if one.default is one.empty else f" = {one.default!r}"
        # Paths and classes of settings have no literal.
        default = " = ..." if default and "(" in default.replace("()", "") else default
        lines.append(f"    {one.name}: {one.annotation}{default},")
    doc = textwrap.indent(inspect.getdoc(function) or "", "    ").strip()
    name = signature.return_annotation.__name__
    body = f'    r"""{doc}\n    """'
    named = getattr(function, "__name__", "")
    return f"def {named}(\n" + "\n".join(lines) + f"\n) -> {name}:\n{body}\n"


if __name__ == "__main__":
    print(stub(), end="")
