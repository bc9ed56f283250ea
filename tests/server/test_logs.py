"""Names of documents and clients in the log: they cannot control the terminal, and cannot forge an entry."""

from __future__ import annotations

import asyncio
import json
import logging
import sys

import anyio
import pytest

from anvil.server import logs

HOSTILE = "\x1b]0;title\x07 page\r\n12:00:00 info forged\x9b31m\x7f"


def record(**fields: str) -> logging.LogRecord:
    made = logging.LogRecord("anvil.server", logging.INFO, __file__, 1, "read %s", (HOSTILE,), None)
    setattr(made, logs.FIELDS, fields)
    return made


@pytest.mark.parametrize("entry", [record(), record(path=HOSTILE)])
def test_text_lines_have_no_control_characters_and_one_entry(entry: logging.LogRecord) -> None:
    text = logs.TextLines().format(entry)
    assert [line[:2] for line in text.split("\n")[1:]] == ["  "] * text.count("\n")
    assert all(character.isprintable() or character == "\n" for character in text)


def test_json_lines_escape_all_control_characters() -> None:
    line = logs.JsonLines().format(record(path=HOSTILE))
    assert line.isprintable()
    assert json.loads(line)["message"] == f"read {HOSTILE}" and json.loads(line)["path"] == HOSTILE


def test_a_traceback_is_shown_without_control_characters() -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        entry = record()
        entry.exc_info = sys.exc_info()
    text = logs.TextLines().format(entry)
    assert "Traceback" in text and "\x1b" not in text and "\x9b" not in text


def test_what_another_handler_writes_is_not_written_twice(capsys: pytest.CaptureFixture[str]) -> None:
    root, own, quiet = logging.getLogger(), logging.getLogger("some.server"), logging.getLogger("some.library")
    before = root.handlers[:], root.level
    try:
        logs.configure("info", "json")
        own.addHandler(logging.StreamHandler(sys.stdout))
        quiet.addHandler(logging.NullHandler())
        logging.getLogger("some.server.error").error("once")
        quiet.error("as well")
        captured = capsys.readouterr()
    finally:
        logging.captureWarnings(False)
        root.handlers[:], root.level = before
        own.handlers.clear()
        quiet.handlers.clear()
    assert captured.out == "once\n"
    assert [json.loads(line)["message"] for line in captured.err.splitlines()] == ["as well"]


def test_the_level_is_that_of_anvil_and_other_libraries_warn() -> None:
    root, own = logging.getLogger(), logging.getLogger("anvil")
    before = root.handlers[:], root.level, own.level
    try:
        for level, shown in (("debug", logging.DEBUG), ("error", logging.ERROR)):
            logs.configure(level)
            assert (own.level, root.level) == (shown, max(shown, logging.WARNING))
    finally:
        logging.captureWarnings(False)
        root.handlers[:], root.level, own.level = before


def test_a_mistake_of_a_client_is_one_short_line(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    wrong, gone = type("ValidationError", (Exception,), {}), asyncio.CancelledError
    try:
        logs.configure("info")
        for name, kind in (("mcp.server.sse", wrong), ("uvicorn.error", gone), ("uvicorn.error", KeyError)):
            try:
                raise kind
            except BaseException:
                logging.getLogger(name).exception("%s %s", kind.__name__, "x" * 100_000)
        lines = capsys.readouterr().err.splitlines()
    finally:
        logging.captureWarnings(False)
        root.handlers[:], root.level = before
    assert [line.split()[1:3] for line in lines[:2]] == [["error", "ValidationError"], ["error", "KeyError"]]
    assert max(map(len, lines[:2])) < 600 and "Traceback" in lines[2]


class Group(Exception):
    """As ExceptionGroup, which Python 3.10 lacks."""

    def __init__(self, *exceptions: Exception) -> None:
        self.exceptions = exceptions


def test_a_client_that_left_its_stream_is_no_entry() -> None:
    def is_written(error: Exception) -> bool:
        return logs._is_relevant(
            logging.LogRecord("uvicorn", logging.ERROR, "", 1, "failed", (), (type(error), error, None))
        )

    left = anyio.BrokenResourceError()
    assert not is_written(left) and not is_written(Group(Group(left)))
    assert is_written(Group(left, ValueError())) and is_written(Group(ValueError()))
