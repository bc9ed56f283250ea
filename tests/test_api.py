"""The object that programs hold: what is exported, what is imported for it, and its end."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from pathlib import Path

import anvil
from tests.support.programs import environment as program_environment


def test_forgetting_to_close_warns(docs: Path) -> None:
    found = anvil.open(docs, provider="none")
    found.search("alerts")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del found
        gc.collect()
    assert [str(each.message) for each in caught if each.category is ResourceWarning] == [
        f"{docs / '.anvil/index.db'} was not closed"
    ]


def test_all_that_is_exported_is_there() -> None:
    for name in anvil.__all__:
        assert getattr(anvil, name) is not None
    assert not hasattr(anvil, "nothing_of_the_kind")


def test_importing_costs_nothing() -> None:
    code = "import anvil, sys; print(sorted({'numpy', 'apsw', 'onnxruntime', 'pygit2', 'click'} & set(sys.modules)))"
    command, where = [sys.executable, "-c", code], program_environment()
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=where)
    assert done.stdout.strip() == "[]"


def test_a_build_and_a_check_open_no_live_index(docs: Path) -> None:
    code = (
        f"import sys, anvil\nwith anvil.open({str(docs)!r}, provider='none') as found:\n"
        " found.index()\n found.index()\n assert not found.check()\n"
        "print([name for name in sys.modules if name.startswith('anvil.live.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not [name for name in ("live_index", "memory_copy", "background_work") if name in done.stdout]
