"""A Dockerfile performed without a container engine: its steps in a chroot over overlays, its settings as engines read
them.

A layer is the folder that a step wrote to, kept under the digest of all that led to it, as in an engine's build cache.
Mounts are made in a mount namespace of the one process that needs them, so that none outlives it. Needs root on Linux.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import re
import shlex
import shutil
import string
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

KEPT = 3600
"""Seconds after its last use, then a layer is removed."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PRIVATE = ["unshare", "--mount", "--propagation", "private"]
MOUNT = """\
mount -t tmpfs tmpfs /mnt
mkdir /mnt/root /mnt/from /mnt/upper /mnt/work
mount -t overlay overlay -o {overlay} /mnt/root
"""
"""Mounts layers as a root at /mnt/root, in a mount namespace of its own."""


@dataclass(frozen=True)
class Step:
    """An instruction of a Dockerfile, and the rest of its line."""

    word: str
    rest: str

    def words(self) -> list[str] | None:
        """Its exec form; None for a shell form."""
        return [str(each) for each in json.loads(self.rest)] if self.rest.startswith("[") else None


@dataclass(frozen=True)
class Settings:
    """The settings of an image for its containers."""

    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": PATH})
    user: str = "0:0"
    folder: str = "/"
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Image:
    """Layers, the base first, and settings."""

    layers: tuple[Path, ...]
    settings: Settings = field(default_factory=Settings)

    def lower(self) -> str:
        """The layers as overlayfs takes them, the topmost first."""
        return "lowerdir=" + ":".join(str(layer) for layer in reversed(self.layers))


def steps(dockerfile: str) -> list[Step]:
    """The instructions of a Dockerfile, one a line, without comments."""
    lines = [line for line in dockerfile.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [Step(*line.split(maxsplit=1)) for line in whole.splitlines()]


def admitted(files: Mapping[str, Path], ignore: str) -> dict[str, Path]:
    """The files of a build context that a ``.dockerignore`` of whole patterns lets in: the last that fits decides."""
    patterns = [line for line in ignore.splitlines() if line and not line.startswith("#")]

    def let_in(path: str) -> bool:
        fitting = [each for each in patterns if fnmatch.fnmatchcase(path, each.removeprefix("!"))]
        return not fitting or fitting[-1].startswith("!")

    return {path: file for path, file in files.items() if let_in(path)}


class Builder:
    """Executes a Dockerfile. ``base`` replaces every image from elsewhere in ``FROM``."""

    def __init__(self, base: Path, cache: Path, context: Mapping[str, Path], given: Mapping[str, str]) -> None:
        """``context``: files for ``COPY``, by their path; ``given``: values of ``ARG``."""
        self._base, self._cache, self._context, self._given = Image((base,)), cache, context, given
        self._stages: dict[str, Image] = {}

    def build(self, dockerfile: str) -> Image:
        """The image of the last stage. CalledProcessError for a step that fails."""
        with self._alone():
            image, variables, first = self._base, dict[str, str](), dict[str, str]()
            name = ""
            for step in steps(dockerfile):
                if step.word == "ARG":
                    key, _, default = step.rest.partition("=")
                    known = first if name else {}
                    variables[key] = self._given.get(key, default or known.get(key, ""))
                    first |= {} if name else variables
                elif step.word == "FROM":
                    source, _, name = string.Template(step.rest).substitute(first).partition(" AS ")
                    name = name or "last"
                    image, variables = self._stages.get(source, self._base), {}
                else:
                    image = self._performed(image, step, variables)
                self._stages[name] = image
            self._forget()
            return image

    def _performed(self, image: Image, step: Step, variables: Mapping[str, str]) -> Image:
        said = image.settings
        known = {**variables, **said.environment}
        if step.word == "RUN":
            return self._layer(image, {**known, "sh": step.rest}, _in_root(known, step.rest))
        rest = string.Template(step.rest).substitute(known)
        if step.word == "COPY":
            return self._copied(image, rest.split())
        if step.word in ("ENV", "LABEL"):
            pairs = dict(each.split("=", 1) for each in shlex.split(rest))
            key = "environment" if step.word == "ENV" else "labels"
            return _with(image, key, {**getattr(said, key), **pairs})
        if step.word in ("USER", "WORKDIR"):
            return _with(image, "user" if step.word == "USER" else "folder", rest)
        if step.word == "EXPOSE":
            return _with(image, "ports", tuple(rest.split()))
        if step.word == "HEALTHCHECK":
            step = Step(step.word, rest.split("CMD ", 1)[1])
        key = {"ENTRYPOINT": "entrypoint", "CMD": "command", "HEALTHCHECK": "health"}[step.word]  # KeyError: learn it
        words = step.words()
        return _with(image, key, tuple(words or ["/bin/sh", "-c", step.rest]))

    def _copied(self, image: Image, words: list[str]) -> Image:
        target = words.pop()
        if words[0].startswith("--from="):
            source = self._stages[words.pop(0).partition("=")[2]]
            (path,) = words
            there, to = (shlex.quote(f"/mnt/{side}") for side in (f"from{path}/.", f"root{target}"))
            script = f"mount -t overlay overlay -o {source.lower()} /mnt/from\nmkdir -p {to}\ncp --archive {there} {to}"
            return self._layer(image, {"from": source.lower(), "path": path, "to": target}, script)
        files = {path: file for path, file in self._context.items() if any(fnmatch.fnmatchcase(path, w) for w in words)}
        if not files or not target.endswith("/"):
            raise LookupError(f"COPY {' '.join(words)}: nothing of the build context, or no folder to copy to")
        digests = {path: hashlib.sha256(file.read_bytes()).hexdigest() for path, file in files.items()}
        line = ["install", "--mode", "644", "-D", "--target-directory", f"/mnt/root{target}", *map(str, files.values())]
        return self._layer(image, {**digests, "to": target}, shlex.join(line))

    def _layer(self, image: Image, inputs: Mapping[str, str], script: str) -> Image:
        """One more layer: the files that a script writes below /mnt/root. ``inputs``: all on which they depend."""
        led = json.dumps([str(image.layers[-1]), inputs], sort_keys=True)
        layer = self._cache / hashlib.sha256(led.encode()).hexdigest()[:20]
        if not layer.is_dir():
            new, work = layer.with_suffix(".new"), layer.with_suffix(".work")
            for folder in (new, work):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
            new.chmod(0o755)
            whole = MOUNT.format(overlay=f"{image.lower()},upperdir={new},workdir={work}") + script
            subprocess.run(
                [*PRIVATE, "sh", "-euc", whole],
                check=True,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                timeout=900,
            )
            shutil.rmtree(work)
            new.rename(layer)
        os.utime(layer)
        return replace(image, layers=(*image.layers, layer))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        import fcntl  # there is none on Windows, where Dockerfiles are read and not performed

        self._cache.mkdir(parents=True, exist_ok=True)
        with open(self._cache / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _forget(self) -> None:
        for layer in self._cache.iterdir():
            if layer.is_dir() and layer.stat().st_mtime < time.time() - KEPT:
                shutil.rmtree(layer)


def _with(image: Image, setting: str, value: Any) -> Image:
    """The image with one other setting."""
    changes: dict[str, Any] = {setting: value}
    return replace(image, settings=replace(image.settings, **changes))


def _in_root(variables: Mapping[str, str], line: str) -> str:
    """The script of a ``RUN``."""
    script = "mount -t proc proc /mnt/root/proc\nmount --rbind /dev /mnt/root/dev\n"
    script += "mount --bind /etc/resolv.conf /mnt/root/etc/resolv.conf\n"
    if "PIP_CERT" in os.environ:  # this machine's way to the registry, which leaves nothing in the layer
        script += "mount -t tmpfs tmpfs /mnt/root/media\ntouch /mnt/root/media/ca\n"
        script += f"mount --bind {shlex.quote(os.environ['PIP_CERT'])} /mnt/root/media/ca\n"
        variables = {**variables, "PIP_CERT": "/media/ca"}
    environment = shlex.join(["env", "-i", *(f"{key}={value}" for key, value in variables.items())])
    return f"{script}chroot /mnt/root {environment} /bin/sh -c {shlex.quote(line)}"
