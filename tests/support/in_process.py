"""The program in this process: the same arguments, output and exit code, half a second faster.

For calls of tests that are about what commands do to files and say of them. That the program makes these calls, and
what only a process has (streams, signals, bytes of arguments, what is loaded), is shown with ``programs``.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import subprocess
from pathlib import Path

from anvil.cli import program as app
from tests.support import programs


def program(*arguments: str | Path, cwd: Path | None = None, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command line and check its exit code."""
    out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        os.chdir(cwd or before)
        try:
            found = app.run([*map(str, arguments)])
        finally:
            os.chdir(before)
    done = subprocess.CompletedProcess(["anvil", *map(str, arguments)], found, out.getvalue(), err.getvalue())
    assert found == code, f"exit code {found}, not {code}\n{done.stdout}\n{done.stderr}"
    return done


printed = functools.partial(programs.printed, by=program)
complaint = functools.partial(programs.complaint, by=program)
