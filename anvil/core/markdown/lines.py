"""What a line is in Markdown."""

from __future__ import annotations

import re

LINE_END = re.compile(r"\r\n|\r|\n")
"""Only these end a line in Markdown; ``str.splitlines`` knows eight more."""
