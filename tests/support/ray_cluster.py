"""A real Ray cluster on this machine for tests, and its processes, which all end with it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

TOKEN = "a-token-of-32-characters-or-more-for-tests"


@dataclass(frozen=True)
class RayCluster:
    """A head node."""

    address: str
    """``ray://HOST:PORT`` of Ray Client."""
    head: str
    """``HOST:PORT`` for a driver on this machine."""
    folder: Path
    """The folder of its files; its name is in the command lines of all its processes except the workers."""

    def workers(self) -> list[int]:
        """The worker processes."""
        names = ("ray::work", "ray::IDLE")
        raylets = set(processes(lambda line: str(self.folder) in line and "raylet" in line.split("\0")[0]))
        return [pid for pid in processes(lambda line: line.startswith(names)) if parent(pid) in raylets]


def processes(fits: Callable[[str], bool]) -> list[int]:
    """Processes by their command line, arguments parted by NUL."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if fits((folder / "cmdline").read_text(errors="replace")):
                found.append(int(folder.name))
    return sorted(found)


def parent(pid: int) -> int:
    """The parent process; 0 when the process no longer exists."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def descendants(pid: int) -> list[int]:
    """All processes below one."""
    found, every = [pid], processes(lambda _: True)
    for each in found:
        found += [other for other in every if parent(other) == each]
    return found[1:]


def gone(pids: list[int], seconds: float = 20.0) -> bool:
    """Whether processes end in time. A zombie counts as ended."""
    end = time.monotonic() + seconds
    while any(alive(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def alive(pid: int) -> bool:
    """Whether a process runs."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@contextlib.contextmanager
def ray_cluster(processors: int = 1) -> Iterator[RayCluster]:
    """A cluster for the time of a ``with``. It has ended after it, however the ``with`` ends."""
    short = tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True)  # for names of sockets
    with short as folder, contextlib.ExitStack() as ending:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment.update(
            HOME=folder,
            RAY_AUTH_MODE="token",
            RAY_AUTH_TOKEN=TOKEN,
            RAY_USAGE_STATS_ENABLED="0",
            PYTHONPATH=str(Path(__file__).parents[2]),
            GRPC_ENABLE_FORK_SUPPORT="0",  # else forks die now and then
            RAY_worker_niceness="0",  # Ray's 15 gives a worker a 30th of a processor that another process wants
        )
        log = Path(folder, "start.log")
        for _ in range(3):  # a node gives itself 30 seconds to come up, whatever else the machine does; not to be set
            port, client = free_ports(2)
            command = [
                sys.executable,
                "-m",
                "ray.scripts.scripts",
                "start",
                "--head",
                "--block",
                f"--port={port}",
                f"--ray-client-server-port={client}",
                f"--num-cpus={processors}",
                "--include-dashboard=false",
                "--no-monitor",
                "--include-log-monitor=false",
                "--min-worker-port=0",
                "--max-worker-port=0",
                f"--temp-dir={folder}",
                "--disable-usage-stats",
                "--node-ip-address=127.0.0.1",
                "--object-store-memory=100000000",
            ]
            with log.open("ab") as output:
                process = subprocess.Popen(
                    command, env=environment, cwd=folder, stdout=output, stderr=output, start_new_session=True
                )
            ending.callback(stop, process)
            if listening(client, process):
                yield RayCluster(f"ray://127.0.0.1:{client}", f"127.0.0.1:{port}", Path(folder))
                return
            ending.close()
        raise AssertionError(f"Ray did not start:\n{log.read_text(errors='replace')[-3000:]}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a node and all its processes."""
    below = descendants(process.pid)
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(15)
    for pid in [each for each in below if alive(each)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.kill()
    process.wait()


def free_ports(count: int) -> list[int]:
    """Free ports below those that the system itself gives to connections and servers: one of these could be given away
    before Ray takes it."""
    first_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    free: list[int] = []
    while len(free) < count:
        port = random.randrange(10_000, max(first_given, 20_000))
        with contextlib.suppress(OSError):
            socket.create_server(("127.0.0.1", port)).close()
            free.append(port)
    return free


def listening(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Wait until a port is open; False when the process ends or takes minutes."""
    end = time.monotonic() + 150
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        time.sleep(0.1)
    return False
