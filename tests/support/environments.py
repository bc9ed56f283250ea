"""An installation of Anvil that may be damaged: a virtual environment of its own, and pip without a network.

What Anvil requires is linked in from the environment of the tests, file by file, so that taking one away or putting
another in its place touches nothing outside.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

from filelock import FileLock

from tests.support.programs import ROOT

EPOCH = "1700000000"
"""``SOURCE_DATE_EPOCH`` of the packages that tests build."""
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([^\]]*)\])?")


def wheel(base: Path) -> Path:
    """Anvil as a wheel, built once for all processes of a run of the tests, whose temporary folder is ``base``."""
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "anvil-wheel"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            part = folder.with_suffix(".part")
            _build_wheel(part)
            part.rename(folder)
    return next(folder.glob("anvil_docs-*.whl"))


def _build_wheel(folder: Path) -> None:
    folder.mkdir()
    command = [sys.executable, "-I", "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    subprocess.run([*command, "-w", str(folder), str(ROOT)], check=True, timeout=120, cwd=folder, env=environment)


def checkout(folder: Path) -> Path | None:
    """A copy of the files of this checkout in ``folder``, with empty models, of which packages are made in no time.

    What is compiled is copied, too, each file with its time, by which Python and pytest know that it is current.
    Outside git, as in an sdist, there is none.
    """
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
    if listed.returncode or not (ROOT / ".git").exists():
        return None
    for file in (ROOT / name for name in ("anvil/index.db", *filter(None, listed.stdout.split("\0")))):
        for each in (file, *(file.parent / "__pycache__").glob(f"{file.stem}.{sys.implementation.cache_tag}*.pyc")):
            if each.is_file():
                (folder / each.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(each, folder / each.relative_to(ROOT))
    for name in ("model.onnx", "passages.onnx"):
        (folder / "anvil/embedding/model" / name).write_bytes(b"")
    return folder


def without_model(wheel: Path, folder: Path) -> Path:
    """A copy of a wheel of Anvil in ``folder``, without the 32 MB of its models, which pip reads several times."""
    target = folder / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(target, "w") as copy:
        for each in whole.infolist():
            data = whole.read(each) if not each.filename.endswith(".onnx") else None
            if each.filename.endswith(".dist-info/RECORD"):
                data = b"".join(line for line in (data or b"").splitlines(keepends=True) if b".onnx," not in line)
            if data is not None:
                copy.writestr(each, data)
    return target


class Installation:
    """A virtual environment with what ``anvil-docs`` requires and nothing else, Anvil itself from a wheel.

    ``wheel`` is the file that pip installs Anvil from. It has no models; those of the checkout are linked in.
    """

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder / "environment"
        self.wheels = folder / "wheels"
        self.wheels.mkdir(parents=True)
        self.wheel = without_model(wheel, self.wheels)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.folder)], check=True, timeout=60)
        self.bin = self.folder / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.bin / "python"
        self.program = self.bin / ("anvil.exe" if os.name == "nt" else "anvil")
        asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
        done = subprocess.run([self.python, "-c", asked], capture_output=True, text=True, check=True, timeout=60)
        self.site = Path(done.stdout.strip())
        for name in closure(["anvil-docs", "pip"]) - {"anvil-docs"}:
            for source, path in _files(name):
                if path.name == "METADATA":  # pip parses all of it several times, and nobody asks for these extras
                    _write_metadata(source, self.site / path)
                    continue
                _link(source, self.site / path)
                compiled = Path(importlib.util.cache_from_source(str(source)))
                if path.suffix == ".py" and compiled.exists():
                    _link(compiled, Path(importlib.util.cache_from_source(str(self.site / path))))
        self.run([str(self.python), "-m", "pip", "install", "-q", "--no-deps", str(self.wheel)])
        for model in (ROOT / "anvil/embedding/model").glob("*.onnx"):
            _link(model, self.site / model.relative_to(ROOT))

    def environment(self, **more: str) -> dict[str, str]:
        """Its programs first, pip without a network."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_", "VIRTUAL"))}
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        own = {
            "PATH": path,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_QUIET": "1",
            "PIP_NO_COMPILE": "0",  # pip compiles with "1": the value is that of "compile"
            "PIP_NO_WARN_CONFLICTS": "0",  # it looks for none: that is a quarter of its time
        }
        return {**kept, **own, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore", **more}

    def run(
        self, command: str | list[str], cwd: Path | None = None, code: int | None = 0, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program, or a command line in a shell."""
        done = subprocess.run(
            command,
            shell=isinstance(command, str),
            cwd=cwd or self.folder,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=180,
            check=False,
        )
        assert code is None or done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def offer(self, distributions: Iterable[str], module: str | None = None) -> None:
        """Let pip find packages of the tests' environment. ``module``: the text of their upper modules, which are all
        that they hold then, and they require nothing; else they are whole."""
        for name in distributions:
            noted = importlib.metadata.distribution(name)
            tag = re.findall(r"^Tag: (.+)$", noted.read_text("WHEEL") or "", re.MULTILINE)[-1]
            file = self.wheels / f"{noted.metadata['Name'].replace('-', '_')}-{noted.version}-{tag}.whl"
            record = []
            with zipfile.ZipFile(file, "w") as archive:
                for source, path in _files(name):
                    if path.name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
                        continue
                    if module is None:
                        archive.write(source, path.as_posix())
                    elif path.parts[0].endswith(".dist-info"):
                        data = source.read_bytes()
                        archive.writestr(path.as_posix(), re.sub(rb"(?m)^Requires-Dist:.*\n", b"", data))
                    elif len(path.parts) < 3 and path.suffix == ".py":
                        archive.writestr(path.as_posix(), module)
                    else:
                        continue
                    record.append(f"{path.as_posix()},,\n")
                info = next(path.parent for _, path in _files(name) if path.name == "METADATA")
                archive.writestr(f"{info.as_posix()}/RECORD", "".join([*record, f"{info.as_posix()}/RECORD,,\n"]))

    def replace(self, path: str, data: bytes | None) -> None:
        """Replace a file with other bytes, or remove it."""
        file = self.site / path
        file.unlink()  # first: it may be linked to one outside
        if data is not None:
            file.write_bytes(data)


def closure(wanted: Iterable[str]) -> set[str]:
    """Distributions such as ``anvil-docs[mkdocs]`` and all that they require, as far as it is installed here."""
    found: set[tuple[str, str]] = set()
    waiting = list(wanted)
    while waiting:
        match = _REQUIREMENT.match(waiting.pop())
        assert match is not None
        name = match[1].lower().replace("_", "-")
        try:
            lines = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system or another Python
        for extra in {"", *(match[2] or "").split(",")} - {each for known, each in found if known == name}:
            found.add((name, extra))
            for line in lines:
                requirement, _, marker = line.partition(";")
                extra_marker = re.search(r"""extra == ['"]([\w-]+)['"]""", marker)
                if (extra_marker[1] if extra_marker else "") == extra:
                    waiting.append(requirement)
    return {name for name, _ in found}


def _files(name: str) -> list[tuple[Path, Path]]:
    """(path on this machine, path in the site folder) of each installed file of a distribution."""
    noted = importlib.metadata.distribution(name)
    listed = [path for path in noted.files or () if ".." not in path.parts and "__pycache__" not in path.parts]
    return [(Path(str(noted.locate_file(path))), Path(*path.parts)) for path in listed]


def _write_metadata(source: Path, target: Path) -> None:
    """Copy the metadata of a distribution without the requirements of its extras."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(re.sub(rb"(?m)^Requires-Dist:.*\bextra ==.*\n", b"", source.read_bytes()))


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
