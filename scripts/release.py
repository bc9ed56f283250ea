"""Making a release: what is not ready, its notes, and its files.

    python scripts/release.py --check              what is not ready; exit code 1 when anything is not
    python scripts/release.py --check --tag v1.2.3 the same, on the tag: it must be this version's, and HEAD
    python scripts/release.py --notes              this version's section of the changelog
    python scripts/release.py --build FOLDER       wheel, sdist, bundle, bill of materials, server.json, checksums

docs/releasing.md says when each is run. The same commit gives the same bytes, but for the bill of materials, which says
what PyPI had that day.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts import docs_index, mcpb, server_json
from scripts.project import MCP_NAME, OWNER, REPOSITORY, ROOT, version

SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
"""MAJOR.MINOR.PATCH; there are no pre-releases."""
HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\] - (?P<date>.+)$", re.MULTILINE)
SUMS = "SHA256SUMS"


# --- what is not ready -------------------------------------------------------------------------------------------


def problems(tag: str | None = None) -> Iterator[str]:
    """The problems that prevent a release of this checkout, each with what to do."""
    now = version()
    if not SEMVER.fullmatch(now):
        yield f"anvil.__version__ is {now!r}: write MAJOR.MINOR.PATCH in anvil/_version.py."
    yield from changelog_problems((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), now)
    if not server_json.is_current():
        yield "server.json is not what the project says: run 'python scripts/server_json.py'."
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    if f"<!-- mcp-name: {MCP_NAME} -->" not in readme:
        yield f"README.md lacks the line by which the MCP registry knows it: <!-- mcp-name: {MCP_NAME} -->"
    yield from pin_problems(now)
    yield from git_problems(now, tag)


def changelog_problems(text: str, now: str) -> Iterator[str]:
    """A changelog whose first section is not this version, dated, with something in it."""
    first = HEADING.search(text)
    if first is None or first["version"] != now:
        said = first["version"] if first else "nothing"
        yield f"CHANGELOG.md begins with {said}, and the version is {now}: give {now} a section on top."
        return
    try:
        date.fromisoformat(first["date"])
    except ValueError:
        yield f"CHANGELOG.md says '{first['date']}' where {now} needs its date: write YYYY-MM-DD."
    if not notes(text, now).strip():
        yield f"CHANGELOG.md says nothing about {now}."


def pin_problems(now: str) -> Iterator[str]:
    """Documentation that tells people to use another version of ours than this one."""
    major = f"v{now.partition('.')[0]}"
    ours = re.escape(f"{OWNER}/{REPOSITORY}")
    for page in sorted([ROOT / "README.md", ROOT / "action.yml", *(ROOT / "docs").rglob("*.md")]):
        text = page.read_text(encoding="utf-8")
        name = page.relative_to(ROOT).as_posix()
        for found in set(re.findall(rf"uses: {ours}@(\S+)", text)) - {major}:
            yield f"{name} uses the action at {found}, which this version does not move: write {major}."
        for found in set(re.findall(rf"repo: \S*{ours}\s+rev: v(\S+)|anvil-docs==([\w.]+)", text)):
            if (pinned := "".join(found)) != now:
                yield f"{name} pins {pinned}: write {now}."


def git_problems(now: str, tag: str | None) -> Iterator[str]:
    """A tree with changes, and a tag that is taken, missing, elsewhere, or of another version."""
    if git("status", "--porcelain"):
        yield "There are changes that are not committed: commit them, or put them away."
    if tag is None:
        if git("tag", "--list", f"v{now}"):
            yield f"The tag v{now} exists already: raise anvil.__version__."
    elif tag != f"v{now}":
        yield f"The tag is {tag}, and the version is {now}: tag v{now}, or raise anvil.__version__."
    elif git("rev-parse", f"{tag}^{{commit}}") != git("rev-parse", "HEAD"):
        yield f"The tag {tag} is not the commit that is checked out."


def git(*arguments: str) -> str:
    """What git prints of this checkout."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8")
    return done.stdout.strip()


def notes(text: str, now: str) -> str:
    """A version's section of the changelog, without its heading."""
    sections = list(HEADING.finditer(text))
    for place, section in enumerate(sections):
        if section["version"] == now:
            end = sections[place + 1].start() if place + 1 < len(sections) else len(text)
            return text[section.end() : end].strip() + "\n"
    return ""


# --- its files ---------------------------------------------------------------------------------------------------


def packages(folder: Path, *options: str) -> tuple[Path, Path]:
    """Build the wheel and the sdist, the wheel from the sdist; their paths. ``options`` go to ``python -m build``."""
    command = [sys.executable, "-m", "build", "--outdir", str(folder), *options, str(ROOT)]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": epoch()}, stdout=sys.stderr)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def epoch() -> str:
    """``SOURCE_DATE_EPOCH``, or the time of the commit; hatchling's own where there is neither."""
    from scripts.sbom import EPOCH

    return os.environ.get("SOURCE_DATE_EPOCH") or (
        git("log", "-1", "--format=%ct") if (ROOT / ".git").exists() else str(EPOCH)
    )


def bill(wheel: Path, file: Path) -> None:
    """Write the bill of materials of the wheel, as it is installed here today."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder, "environment")
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, environment], check=True)
        subprocess.run([*uv, "pip", "install", "--quiet", "--python", environment, wheel], check=True)
        script = [sys.executable, str(ROOT / "scripts" / "sbom.py"), str(wheel), str(environment), str(file)]
        subprocess.run(script, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": epoch()})


def sums(folder: Path) -> None:
    """Write the checksums of a folder's files, as ``sha256sum --check`` reads them."""
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(folder.iterdir())
        if file.name != SUMS
    ]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8", newline="\n")


def build(folder: Path) -> None:
    """All files of the release, in an empty folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        sys.exit(f"{folder} is not empty. Name a folder that is.")
    docs_index.write()
    try:
        wheel, _ = packages(folder)
    finally:
        docs_index.INDEX.unlink()
    bundle = mcpb.build(wheel, folder)
    (folder / "server.json").write_text(server_json.text(bundle), encoding="utf-8", newline="\n")
    bill(wheel, folder / f"anvil-{version()}.cdx.json")
    sums(folder)


def main() -> None:
    """Do what is asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--check", action="store_true", help="say what is not ready")
    asked.add_argument("--notes", action="store_true", help="print this version's section of the changelog")
    asked.add_argument("--build", metavar="FOLDER", type=Path, help="make all files of the release")
    parser.add_argument("--tag", help="with --check: the tag that is released")
    given = parser.parse_args()
    if given.check:
        found = list(problems(tag=given.tag))
        print("\n".join(found) if found else f"{version()} is ready.")
        sys.exit(bool(found))
    if given.notes:
        print(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version()), end="")
    else:
        build(given.build)


if __name__ == "__main__":
    main()
