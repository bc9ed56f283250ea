"""The number of Anvil's modules that a search and a build pass through, in this version and in others.

    git worktree add /tmp/before COMMIT
    python benchmarks/modules.py DOCS [CHECKOUT ...]

A module is passed when one of its functions is called. What runs while a module is imported does not count. Five are
counted: ``search_docs`` of a server over a pipe that has answered before; the same search with ``anvil.open``; with it,
a build after one page was edited; a build from nothing on the command line; and ``mkdocs build`` with the plugin, after
an edit of one page. The pages lie outside of git, which would add a few. What the watcher of files does by its clock
does not count. "Border": calls from the API object to the live index and back ("callbacks"), in that search; the end of
a ``with`` block is no call. Counts, not times: the hook makes all slow.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import ROOT, run, table
from server import Server

API = ("api.py", "page_queries.py", "queries.py")
QUESTION = "how to configure a single folder"
LIVE = ("answering.py", "services/live/live_index.py", "live/live_index.py")
"""The module of the live index: in the three layouts of the package so far."""
HEADER = [
    "version",
    "`search_docs`",
    "`anvil.open`",
    "build of one edited page",
    "`anvil build`",
    "`mkdocs build`",
    "border: calls and callbacks",
]
QUIET_S = 8.0
"""After this time without a request a server has loaded all that it loads."""
SETTLED_S = 50.0
"""Age of the pages of a search: those that were written in the last half minute are read again at each one."""

TRACE = """
import json, os, runpy, signal, sys, threading
package, out, *arguments = sys.argv[1:]
package, plugin = (os.path.join(package, name) + os.sep for name in ("anvil", "mkdocs_anvil"))
passed, calls = set(), {}

def place(frame):
    name = frame.f_code.co_filename
    if name.startswith(package):
        return name[len(package):]
    return "plugin/" + name[len(plugin):] if name.startswith(plugin) else ""

def hook(frame, event, argument):
    if threading.current_thread().name == "anvil-watcher":
        return  # it looks at the folder each second, whether or not there is a search
    module = place(frame) if event == "call" else ""
    if not module or frame.f_code.co_name == "<module>":
        return
    above, caller = frame.f_back, ""
    while above is not None:
        if above.f_code.co_name == "<module>" and place(above) not in ("", "__main__.py"):
            return  # a module is being imported
        caller = caller or place(above)  # past functions of libraries
        above = above.f_back
    passed.add(module)
    if caller and caller != module and frame.f_lasti <= 8:  # else a generator that goes on
        calls[caller, module] = calls.get((caller, module), 0) + 1

def reset(*_):
    passed.clear(), calls.clear()

def write(*_):
    with open(out + ".new", "w") as file:
        json.dump({"passed": sorted(passed), "calls": [[*pair, count] for pair, count in calls.items()]}, file)
    os.replace(out + ".new", out)

signal.signal(signal.SIGUSR1, reset), signal.signal(signal.SIGUSR2, write)
threading.setprofile(hook), sys.setprofile(hook)
if arguments[0] == "open":
    import anvil
    with anvil.open(*arguments[1:3]) as opened:
        for question in ("a first question", "another one"):
            opened.search(question)
        reset(), opened.search(arguments[3]), write()
elif arguments[0] == "edit":
    import anvil
    with anvil.open(*arguments[1:3]) as opened:
        opened.index()
    edited = os.path.join(arguments[1], arguments[3])
    with open(edited, "a") as file:
        file.write("\\n\\n## Another section\\n\\nIts text.\\n")
    reset()
    with anvil.open(*arguments[1:3]) as opened:
        opened.index()
    write()
elif arguments[0] == "mkdocs":
    sys.argv = arguments
    try:
        runpy.run_module("mkdocs", run_name="__main__")
    finally:
        write()
else:
    sys.argv = ["anvil", *arguments]
    try:
        runpy.run_module("anvil", run_name="__main__")
    finally:
        write()
"""


class Traced:
    """A checkout whose calls are recorded."""

    def __init__(self, checkout: Path, docs: Path, work: Path) -> None:
        work.mkdir()
        self.checkout, self.docs, self.work = checkout.resolve(), work / "docs", work
        shutil.copytree(docs, self.docs)
        self.copied_at = time.monotonic()
        self.page = min(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
        self.index, self.record = work / "index.db", work / "record.json"
        self.environment = {"PYTHONPATH": str(self.checkout), "XDG_CACHE_HOME": str(work / "cache")}

    def command(self, *arguments: str) -> list[str]:
        """Python with the hook; what follows are the arguments of ``anvil``."""
        return [sys.executable, "-c", TRACE, str(self.checkout), str(self.record), *arguments]

    def taken(self) -> dict[str, Any]:
        """The record, as soon as it is written."""
        while not self.record.exists():
            time.sleep(0.05)
        record: dict[str, Any] = json.loads(self.record.read_text(encoding="utf-8"))
        self.record.unlink()
        return record

    def settle(self) -> None:
        """Wait until the pages are old enough."""
        time.sleep(max(0.0, self.copied_at + SETTLED_S - time.monotonic()))

    def build(self) -> dict[str, Any]:
        """The record of a build from nothing."""
        built = "build", "--docs", str(self.docs), "--index", str(self.index), "--quiet"
        run(self.command(*built), self.environment, self.work)
        return self.taken()

    def opened(self) -> dict[str, Any]:
        """The record of a search with ``anvil.open``."""
        self.settle()
        run(self.command("open", str(self.docs), str(self.index), QUESTION), self.environment, self.work)
        return self.taken()

    def edited(self) -> dict[str, Any]:
        """The record of a build of one edited page, with ``anvil.open``."""
        run(self.command("edit", str(self.docs), str(self.index), self.page), self.environment, self.work)
        return self.taken()

    def site(self) -> dict[str, Any]:
        """The record of ``mkdocs build`` of a site with one edited page."""
        config = self.work / "mkdocs.yml"
        config.write_text(f"site_name: Pages\ndocs_dir: {self.docs}\nplugins: [anvil]\n", encoding="utf-8")
        built = "mkdocs", "build", "--quiet", "--config-file", str(config), "--site-dir", str(self.work / "site")
        run(self.command(*built), self.environment, self.work)
        self.taken()
        with (self.docs / self.page).open("a", encoding="utf-8") as file:
            file.write("\n\n## One section more\n\nIts text.\n")
        run(self.command(*built), self.environment, self.work)
        return self.taken()

    def served(self) -> dict[str, Any]:
        """The record of ``search_docs`` over a pipe."""
        self.settle()
        flags = "serve", "--docs", str(self.docs), "--index", str(self.index), "--log-level", "error"
        server = Server(self.work, command=self.command(*flags), settings=self.environment)
        server.begin()
        server.search("a first question")
        time.sleep(QUIET_S)
        server.search("another one")
        server.process.send_signal(signal.SIGUSR1)
        time.sleep(0.5)
        server.search(QUESTION)
        server.process.send_signal(signal.SIGUSR2)
        record = self.taken()
        server.end()
        return record


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("docs", type=Path)
    parser.add_argument("checkouts", nargs="*", type=Path)
    given = parser.parse_args()
    os.environ.pop("ANVIL_EMBEDDING_CACHE", None)
    rows = []
    for number, checkout in enumerate([*given.checkouts, ROOT]):
        with tempfile.TemporaryDirectory() as name:
            traced = Traced(checkout, given.docs, Path(name, str(number)))
            build, opened, served = traced.build(), traced.opened(), traced.served()
            edited, site = traced.edited(), traced.site()
        counts = {(caller, module): count for caller, module, count in served["calls"]}
        down = sum(counts.get((api, module), 0) for api in API for module in LIVE)
        back = sum(counts.get((module, api), 0) for api in API for module in LIVE)
        passed = [str(len(record["passed"])) for record in (served, opened, edited, build, site)]
        rows.append([checkout.name, *passed, f"{down} and {back}"])
    print(table(HEADER, rows))


if __name__ == "__main__":
    main()
