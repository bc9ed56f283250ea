"""The table ``[serve]`` of the configuration: the log of questions, and reports of pages."""

from __future__ import annotations

from dataclasses import dataclass

from anvil.settings.schema import within


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The log that a server of a documentation folder writes. By default it writes none."""

    question_log: bool = False
    """Whether the questions that agents ask are logged, on this machine only: time, question, confidence and pages.
    What looks like a secret or an e-mail address is masked. `anvil questions` shows which ones no page answers."""
    report_page: bool = False
    """Whether agents get the tool `report_page`, with which they report pages that are outdated, wrong or missing, into
    the same log."""
    log_bytes: int = 5_000_000
    """Bytes of the log. A longer one is renamed to `questions.old.jsonl`, in place of the one before."""

    def __post_init__(self) -> None:
        within("serve.log_bytes", self.log_bytes, 1000)
