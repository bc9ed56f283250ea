"""Ctrl-C, once and several times, and SIGTERM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.support.programs import environment

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are different there")

CODE = """
import sys
import time
from anvil.cli import program

def run(arguments):
    try:
        print("begun", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        time.sleep(float(arguments[0]))
        print("cleaned up", flush=True)
        return 130
    except SystemExit:
        time.sleep(float(arguments[0]))
        print("cleaned up after SIGTERM", flush=True)
        raise

program.run = run
program.CLEANUP_S = float(sys.argv[2])
program.main()
"""


def interrupted(
    cleanup_s: float, ignored_s: float, pauses_s: list[float], number: int = signal.SIGINT
) -> tuple[int, str, str]:
    """Exit code and output of a program that cleans up for some seconds, with a signal after each pause.
    ``ignored_s``: how long a second one is ignored."""
    line = [sys.executable, "-c", CODE, str(cleanup_s), str(ignored_s)]
    process = subprocess.Popen(
        line, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    for pause_s in pauses_s:
        time.sleep(pause_s)
        process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_signals_that_follow_at_once_do_not_disturb_the_cleanup() -> None:
    assert interrupted(0.2, 20, [0, 0.02, 0.02, 0.02]) == (130, "cleaned up\n", "")


def test_a_second_interrupt_after_a_while_ends_a_long_cleanup() -> None:
    assert interrupted(60, 0.05, [0, 0.1]) == (130, "", "")


def test_a_program_that_is_told_to_end_cleans_up() -> None:
    assert interrupted(0.2, 20, [0, 0.02], signal.SIGTERM) == (143, "cleaned up after SIGTERM\n", "")
