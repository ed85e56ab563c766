"""What Fabula consists of, and whether anything of it is known to be vulnerable.

    python bench/audit.py [--uv UV] [--service URL] [--out build/sbom.json] [--required]

Writes a bill of materials (CycloneDX) of everything in uv.lock that users install, and asks the
advisory service (OSV) about each version. Exit code 1 where one is vulnerable. Where the service
cannot be reached, that is reported and is not an error unless it is --required: what was not
checked is never reported as sound.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import corpora

SKIPPED = "advisories: NOT CHECKED, the service could not be asked"


def bill_of_materials(uv: str, out: Path) -> int | None:
    """How many components the file names; None where this uv cannot write one."""
    words = [uv, "export", "--format", "cyclonedx1.5", "--locked", "--all-extras", "--no-dev"]
    try:
        done = subprocess.run([*words, "--quiet"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    found = json.loads(done.stdout)
    components = found["components"]
    lacking = [one["name"] for one in components if not (one.get("version") and one.get("purl"))]
    if len(components) < 50 or lacking:
        sys.exit(f"bill of materials: {len(components)} components, without version: {lacking}")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(done.stdout, encoding="utf-8")
    return len(components)


def advisories(uv: str, service: str | None) -> tuple[int, str]:
    """The exit code of `uv audit` (1: vulnerable, 2: could not ask), and what it says."""
    words = [uv, "audit", "--locked", "--preview-features", "audit-command"]
    words += ["--service-url", service] if service else []
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


def main() -> None:
    options = corpora.options(
        __doc__, uv="uv", service=str, out=Path("build/sbom.json"), required=False
    )
    n = bill_of_materials(options.uv, options.out)
    if n is None:
        print(f"bill of materials: NOT WRITTEN, {options.uv} is not there or too old")
        sys.exit(1 if options.required else 0)
    print(f"bill of materials: {n} components in {options.out}", flush=True)
    if corpora.SMOKE:
        return
    code, said = advisories(options.uv, options.service)
    if code == 0:
        print(f"advisories: {said.splitlines()[-1]}")
    elif code == 1:
        sys.exit(f"advisories: vulnerable\n{said}")
    else:
        print(f"{SKIPPED}:\n{said}", file=sys.stderr)
        sys.exit(1 if options.required else 0)


if __name__ == "__main__":
    main()
