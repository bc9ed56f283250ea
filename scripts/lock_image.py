"""Write docker/requirements.txt: what the container image installs besides Anvil, each wheel by version and SHA-256.

    pip install uv && python scripts/lock_image.py

takes the newest versions that pyproject.toml allows. uv resolves, for the Python of the image's Debian and both
architectures; the versions must be the same for both, and of each package only wheels count, so that nothing is
compiled. A test compares the versions with pyproject.toml.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "docker" / "requirements.txt"
PYTHON = "3.13"
"""That of Debian 13."""
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")
OPENING = """\
# Written by scripts/lock_image.py from pyproject.toml: Python {python} on Linux, {platforms}.
"""


def resolved(platform: str) -> dict[str, tuple[str, set[str]]]:
    """Package -> its version, and the SHA-256 of each wheel that fits a platform."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "pylock.toml"
        subprocess.run(
            [
                "uv",
                "pip",
                "compile",
                str(ROOT / "pyproject.toml"),
                "--quiet",
                "--format",
                "pylock.toml",
                "--python-version",
                PYTHON,
                "--python-platform",
                platform,
                "--only-binary",
                ":all:",
                "--output-file",
                str(out),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        packages: list[dict[str, Any]] = tomllib.loads(out.read_text(encoding="utf-8"))["packages"]
    return {
        each["name"]: (each["version"], {wheel["hashes"]["sha256"] for wheel in each["wheels"]}) for each in packages
    }


def written(found: Mapping[str, Mapping[str, tuple[str, set[str]]]]) -> str:
    """The file, of what each platform resolved to. SystemExit when they do not agree."""
    first, *others = found.values()
    for other in others:
        versions, theirs = ({name: version for name, (version, _) in each.items()} for each in (first, other))
        if versions != theirs:
            raise SystemExit(f"The platforms differ: {sorted(versions.items() ^ theirs.items())}")
    lines = [OPENING.format(python=PYTHON, platforms=" and ".join(name.split("-")[0] for name in found))]
    for name, (version, _) in sorted(first.items()):
        hashes = sorted(set().union(*(each[name][1] for each in found.values())))
        lines.append(" \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{each}" for each in hashes)]) + "\n")
    return "".join(lines)


if __name__ == "__main__":
    LOCK.write_text(written({platform: resolved(platform) for platform in PLATFORMS}), encoding="utf-8")
    print(f"{LOCK} written.")
