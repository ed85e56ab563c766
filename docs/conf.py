"""How `make docs` builds the manual: offline, with nothing fetched by the page either."""

import os
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

from fabula import __version__

# Modules are imported to be described; their kernels need not be compiled for that.
os.environ["NUMBA_DISABLE_JIT"] = "1"

project = "Fabula"
author = "The Fabula authors"
copyright = "The Fabula authors, Apache License 2.0"  # noqa: A001 (Sphinx's word)
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
# Docstrings write code in single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_display_short_literal_types = True
add_module_names = False

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"Fabula {__version__}"
html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
_SERIF = "Iowan Old Style, Palatino, Palatino Linotype, URW Palladio L, Georgia, serif"
html_theme_options = {
    "light_css_variables": {
        "font-stack--headings": _SERIF,
        "color-background-primary": "#fbf9f4",
        "color-background-secondary": "#f5f1e8",
        "color-brand-primary": "#8a5406",
        "color-brand-content": "#8a5406",
        "color-brand-visited": "#6b5233",
    },
    "dark_css_variables": {
        "font-stack--headings": _SERIF,
        "color-background-primary": "#171614",
        "color-background-secondary": "#1d1b18",
        "color-brand-primary": "#e8a742",
        "color-brand-content": "#e8a742",
        "color-brand-visited": "#c8a877",
    },
}


def _as_mathml(writer: Any, node: nodes.math | nodes.math_block) -> None:
    """A formula as MathML, which browsers show by themselves."""
    is_block = isinstance(node, nodes.math_block)
    formula = tex2mathml(node.astext(), as_block=is_block)
    writer.body.append(f'<div class="formula">{formula}</div>' if is_block else formula)
    raise nodes.SkipNode


def _escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Bars in docstrings are magnitudes, not the substitutions of reStructuredText."""
    lines[:] = [line if line.startswith(" ") else line.replace("|", r"\|") for line in lines]


def _plain_defaults(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str
) -> tuple[str | None, str]:
    """The default of a field that is made anew for each object reads as `...`."""
    return signature and signature.replace("<factory>", "..."), returns


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (_as_mathml, None), (_as_mathml, None))
    app.connect("autodoc-process-signature", _plain_defaults)
    app.connect("autodoc-process-docstring", _escape_bars)
