"""What keeps people from a page: what axe finds, and what sticks out of a small window."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest


def axe() -> str:
    """The script that finds barriers; of the package only this file is used."""
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("axe-playwright-python, which holds axe, is not installed")
    return (Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")


AXE = """
const done = arguments[0];
const tags = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"];
axe.run(document, {runOnly: {type: "tag", values: tags}, preload: false,
                    resultTypes: ["violations"]}).then(
  found => done(found.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 120))])));
"""


def emulate(driver: Any, width: int, height: int, scheme: str = "light") -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def barriers(driver: Any, script: str) -> list[object]:
    """What axe finds on a page, wide and light, and on a phone in the dark; and what sticks out."""
    found = []
    driver.execute_script(script)
    for window in ((1400, 900, "light"), (390, 844, "dark")):
        emulate(driver, *window)
        found += driver.execute_async_script(AXE)
    # A window of 1400 by 900 at 200 %; and the narrowest that has to do.
    for width, height in ((390, 844), (700, 450), (320, 640)):
        emulate(driver, width, height)
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        found += [("wider than the window", wide, width)] * (wide > width)
    emulate(driver, 1400, 900)
    return found
