"""Fixtures that many tests share: a clean environment, a small folder of documents, the real model."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir

from anvil.embedding import local as embedding_local
from anvil.embedding.provider import EmbeddingProvider, create_provider
from anvil.settings.schema import EmbeddingSettings
from tests.support import fork_server, model_memory

PAGES = {
    "index.md": """\
# Lighthouse

Lighthouse watches your servers and tells you when one is down. It asks each of them every minute, from one or
several places, keeps the answers for a year, and draws them as a chart that anybody in the team can read.

## Why another monitor

It is one binary, it needs no database, and it starts in a second. Other monitors want a cluster of their own, which
is one more thing that can be down at night; this one runs on the smallest machine that you have left over.
""",
    "install.md": """\
---
title: Installing
tags: [start]
---

# Install

Two packages are published with every release, and a container image. All are signed with the same key, whose
fingerprint stands on the front page of the project. Check it once, and let the package manager check it afterwards.

## Linux

Download the package and run `dpkg -i lighthouse.deb`. The service starts by itself, listens on port 7070 of the
loopback address, and writes its log to the system journal, where `journalctl -u lighthouse` shows it.

## Windows

Run the installer. It registers a Windows service called LighthouseAgent, which starts with the machine. Settings lie
in the folder ProgramData; the event viewer shows what it has to say, and the installer can be run again to mend it.
""",
    "guides/alerts.md": """\
# Alerts

An alert is sent when a check fails three times in a row. It names the server, the check, and the answer that came
instead of the expected one. When the check succeeds again, a second message says how long the trouble lasted.

## E-mail

Set `smtp_host` and `smtp_port` in lighthouse.toml, and list the recipients. Messages of one minute are put together
into one, so that a broken switch does not fill a mailbox. The sender address must be one that your relay accepts.

## Silence at night

A quiet window holds back alerts between two hours, such as 22:00 and 06:00. What happened meanwhile is told in one
summary in the morning. Checks marked as urgent do not care what time it is, and neither does the person on duty.

## Escalation

An alert that nobody acknowledges within ten minutes goes to the next person on call. The order is a list of names,
and each name has hours; somebody who is away is passed over. The last one in the list is asked again every hour.
""",
    "guides/checks.md": """\
# Checks

A check is a question that is put to a server again and again, and the answer that is expected. Five kinds come with
Lighthouse, and a program of your own can be a sixth: whatever exits with zero is a success, and the rest is not.

## HTTP

An HTTP check requests a URL and expects status 200. Use `--expect-status` for another one, and `--expect-text` for a
word that must be in the page. Redirects are followed five times, and the time to the first byte is kept as a number.

## Certificates

Lighthouse warns two weeks before a TLS certificate expires. See DEC-0054 for why two weeks and not four: most of the
certificates that people watch are renewed by a robot thirty days ahead, and a warning that is always early is ignored.

## Disk space

A disk check fails when less than ten percent of a volume is free. The number can be set for each volume, as a share
or in gigabytes. Volumes that come and go, such as sticks and network shares, are left out unless they are named.
""",
}


# How fast inputs are made depends on the machine, and no test may. This is here, before any test is imported.
# 30 examples, not 100: those tests took 19 s of processor time, and CI runs other examples on each of its Pythons.
settings.register_profile("suite", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")
set_hypothesis_home_dir(fork_server.ROOT / ".hypothesis")  # else that of the working folder, which is / after a fork
_numbers = itertools.count()
MEMORY = Path("/dev/shm")
"""Where Linux keeps files in memory; a container may have 64 MB of it."""
MIN_MEMORY_BYTES = 4 << 30
"""Twice what a whole run writes."""
SAME_PROCESS = {
    "converters": ("tests/library/test_conversion_process", "tests/library/test_library", "tests/e2e/library/"),
    "milvus": ("tests/milvus/", "tests/e2e/milvus/"),
    "mkdocs and sphinx": (
        *("tests/e2e/mkdocs/", "tests/documents/test_working_tree_links"),
        *(f"tests/e2e/site/test_{name}" for name in ("generators", "markdown", "search_page", "sphinx")),
    ),
}
"""A library that takes seconds to import -> how the names of the files begin that need it, or fork from it."""


def pytest_configure(config: pytest.Config) -> None:
    """What programs that tests start would inherit: a shell's background jobs ignore Ctrl-C; some keep no bytecode.

    Hundreds of processes start here, and none should compile what another has compiled. ``-p no:cacheprovider`` keeps
    files of Python out of the checkout as well as those of pytest.
    """
    if not config.pluginmanager.is_blocked("cacheprovider"):
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MIN_MEMORY_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # of tmp_path; the name is that of pytest
    fork_server.install(config.args)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """For ``-n auto``: two more than there are processors, for many tests wait for a server, a watcher or a browser."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else (os.cpu_count() or 1) + 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Files that need one large library run in one process of pytest-xdist, for each process would import it."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    def scope(nodeid: str) -> str:
        return next((scope for scope, files in SAME_PROCESS.items() if nodeid.startswith(files)), nodeid.split("::")[0])

    scheduling = LoadFileScheduling(config, log)
    scheduling._split_scope = scope
    return scheduling


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A process of pytest-xdist tells the first one the end of a test alone, and what failed or took long before it and
    after it: each message costs both processes half a millisecond, and pytest has six for each of thousands of tests.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    from _pytest.runner import runtestprotocol

    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > 0.1:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Python's garbage collector goes through thousands of tests and their modules once, and never again."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # a tenth of the time of the tests in this process with the usual 700, 10, 10
    gc.enable()
    return collected


@pytest.fixture(scope="session")
def homes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the homes of tests. It and all their files are removed at the end, unless a test has failed."""
    yield tmp_path_factory.mktemp("homes")
    if not request.session.testsfailed:
        shutil.rmtree(tmp_path_factory.getbasetemp(), ignore_errors=True)


@pytest.fixture(scope="session")
def git_settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The machine's settings of git: repositories without examples of hooks, no upkeep, no waiting for the disk."""
    folder = write(tmp_path_factory.mktemp("git"), {"template/info/exclude": "", "template/hooks/none": ""})
    (folder / "template/hooks/none").unlink()
    template = (folder / "template").as_posix()
    settings = f"[init]\n\ttemplateDir = {template}\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
    write(folder, {"config": f"{settings}[core]\n\tfsync = none\n"})
    return folder / "config"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, homes: Path, git_settings: Path) -> None:
    """No configuration, key, home or working folder of the machine reaches a test.

    The working folder is an empty one: in the checkout, ``anvil.open(index=...)`` would take the project's own docs/.
    """
    for name in list(os.environ):
        if name.startswith(("ANVIL_", "OPENAI_", "GIT_")) or name == "SOURCE_DATE_EPOCH":
            monkeypatch.delenv(name)
    home = homes / str(next(_numbers))
    home.mkdir()
    for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(git_settings))
    monkeypatch.chdir(home)


def write(folder: Path, pages: dict[str, str]) -> Path:
    """Write pages (path -> text) into a folder; the folder."""
    for path, text in pages.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
    return folder


def linked(link: Path, target: Path) -> None:
    """A symbolic link, as a checkout brings it; the test is skipped where there can be none."""
    link.parent.mkdir(parents=True, exist_ok=True)
    try:
        link.symlink_to(target, target_is_directory=target.is_dir())
    except OSError:
        pytest.skip("links are not allowed here")


@pytest.fixture(autouse=True, scope="module")
def remembered_model(request: pytest.FixtureRequest) -> Iterator[None]:
    """The bundled model runs once for each text, except where it is the subject."""
    with pytest.MonkeyPatch.context() as patched:
        if "tests/embedding" not in request.path.as_posix():
            for name, value in model_memory.REPLACED.items():
                patched.setattr(embedding_local, name, value)
        yield


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of four pages, outside git."""
    return write(tmp_path / "docs", PAGES)


@pytest.fixture(scope="session")
def local() -> Iterator[EmbeddingProvider]:
    """The bundled model, loaded once."""
    provider = create_provider("local", EmbeddingSettings())
    yield provider
    provider.close()


@pytest.fixture(scope="session")
def keywords() -> EmbeddingProvider:
    """No vectors: for what does not depend on them."""
    return create_provider("none", EmbeddingSettings(provider="none"))


def replacements(index: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files this process has open at ``index`` each time that another takes its place; it grows."""
    opened = Path("/proc/self/fd")
    if not opened.is_dir():
        pytest.skip("this system does not tell which files a process has open")
    seen: list[int] = []
    replace = os.replace

    def counting(source: Path, target: Path) -> None:
        if Path(target) == index:
            there = (entry.resolve() for entry in opened.iterdir())
            seen.append(sum(file == index.resolve() for file in there))
        replace(source, target)

    monkeypatch.setattr(os, "replace", counting)
    return seen
