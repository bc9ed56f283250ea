"""Containers of a performed image: its program as process 1 of its own, as the user it names, without privileges, on a
root that cannot be written, in a network of its own."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import shlex
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.support.images import MOUNT, PRIVATE, Image

NEW_NETWORK = 0x40000000
UP, SET_FLAGS = 0x1, 0x8914


@dataclass(frozen=True)
class Mount:
    """Something of this machine inside a container; without ``source``, an empty folder in memory."""

    target: str
    source: Path | None = None
    writable: bool = False

    def script(self) -> str:
        """The mount commands. As with an engine, a missing target is created."""
        there = shlex.quote("/mnt/root" + self.target)
        if self.source is None:
            return f"mkdir -p {there}\nmount -t tmpfs -o mode=1777,nosuid,nodev,noexec tmpfs {there}\n"
        place = f"mkdir -p {there}" if self.source.is_dir() else f"mkdir -p $(dirname {there})\ntouch {there}"
        made = f"{place}\nmount --bind {shlex.quote(str(self.source))} {there}\n"
        return made + ("" if self.writable else f"mount -o remount,bind,ro {there}\n")


@dataclass
class Container:
    """A running container."""

    process: subprocess.Popen[str]
    line: list[str]
    """The command line before a program in the container, so that it runs as the image's user."""

    @property
    def first(self) -> int:
        """The process id of its process 1 on this machine."""
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text())

    @contextmanager
    def network(self) -> Iterator[None]:
        """In this block, sockets of this thread, and of threads it starts, are in the container's network."""
        with open("/proc/thread-self/ns/net") as own, open(f"/proc/{self.first}/ns/net") as theirs:
            _enter(theirs.fileno())
            try:
                yield
            finally:
                _enter(own.fileno())

    def answers(self, port: int, seconds: float = 60) -> None:
        """Wait until a process listens on a port."""
        end = time.monotonic() + seconds
        while True:
            with self.network(), socket.socket() as asking:
                if asking.connect_ex(("127.0.0.1", port)) == 0:
                    return
            assert self.process.poll() is None and time.monotonic() < end, self.process.communicate(timeout=5)
            time.sleep(0.05)

    def well(self, check: Sequence[str], seconds: float = 60) -> str:
        """Wait until a health check succeeds. Returns its output."""
        end = time.monotonic() + seconds
        while (done := self.run(*check)).returncode:
            assert self.process.poll() is None and time.monotonic() < end, done
            time.sleep(0.2)
        return done.stdout

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run another program in the container as its user, like ``docker exec`` and health checks."""
        enter = ["nsenter", "--target", str(self.first), "--all", "--root"]
        return subprocess.run([*enter, *self.line, *command], capture_output=True, text=True, timeout=60, check=False)

    def handles(self, number: int) -> bool:
        """Whether its process 1 has a handler for a signal."""
        (caught,) = re.findall(r"^SigCgt:\t(\w+)$", Path(f"/proc/{self.first}/status").read_text(), re.MULTILINE)
        return bool(int(caught, 16) >> (number - 1) & 1)

    def stop(self, seconds: float = 20) -> int:
        """Send SIGTERM to process 1. Returns the exit code."""
        os.kill(self.first, signal.SIGTERM)
        return self.process.wait(seconds)


@contextmanager
def started(
    image: Image,
    *command: str,
    mounts: Sequence[Mount] = (),
    environment: Mapping[str, str] | None = None,
    entrypoint: Sequence[str] | None = None,
    network: Literal["own", "host"] = "own",
) -> Iterator[Container]:
    """A container of an image, with the image's command or another. It is removed at the end."""
    settings = image.settings
    user, _, group = settings.user.partition(":")
    variables = {**settings.environment, **(environment or {})}
    # --kill-child again: the kernel forgets it when the user changes.
    line = [
        "setpriv",
        f"--reuid={user}",
        f"--regid={group}",
        "--clear-groups",
        "--no-new-privs",
        "--inh-caps=-all",
        "--bounding-set=-all",
        "--pdeathsig=KILL",
        "env",
        "-i",
        f"--chdir={settings.folder}",
        *(f"{key}={value}" for key, value in variables.items()),
    ]
    begin = settings.entrypoint if entrypoint is None else entrypoint
    script = MOUNT.format(overlay=f"{image.lower()},upperdir=/mnt/upper,workdir=/mnt/work")
    script += "".join(mount.script() for mount in mounts)
    script += "mount -t proc proc /mnt/root/proc\nmount --rbind /dev /mnt/root/dev\nmount -o remount,ro /mnt/root\n"
    script += f"exec chroot /mnt/root {shlex.join([*line, *begin, *(command or settings.command)])}"
    process = subprocess.Popen(
        [*PRIVATE, *(["--net"] if network == "own" else []), "--pid", "--fork", "--kill-child", "sh", "-euc", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        container = Container(process, line)
        try:
            end = time.monotonic() + 10
            while process.poll() is None and not Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text():
                assert time.monotonic() < end
                time.sleep(0.01)
            if process.poll() is None and network == "own":
                with container.network(), socket.socket() as any_socket:  # loopback is down in a new network
                    fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh", b"lo", UP))
            yield container
        finally:
            process.kill()


def _enter(network: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(network, NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "setns")


def finished(image: Image, *command: str, seconds: float = 60, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a container that ends by itself. Returns exit code and output. ``more``: as for :func:`started`."""
    with started(image, *command, **more) as container:
        out, err = container.process.communicate(timeout=seconds)
        return subprocess.CompletedProcess(command, container.process.returncode, out, err)
