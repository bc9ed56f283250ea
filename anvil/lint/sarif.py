"""Findings as SARIF 2.1.0, the format that code scanning services read.

Source: "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", OASIS Standard, 2020.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from anvil._version import __version__
from anvil.lint.rules import RULES
from anvil.lint.values import LintFinding

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
HOME = "https://anvil-docs.github.io/anvil/"


def sarif(findings: Sequence[LintFinding], folder: str) -> dict[str, Any]:
    """The log of one run. ``folder``: the documentation folder from the repository's root, POSIX, ``""`` for the same.

    Addresses are relative to the repository's root. A finding keeps its fingerprint when lines move.
    """
    names = list(RULES)
    rules = [
        {
            "id": name,
            "shortDescription": {"text": " ".join((rule.__doc__ or name).split())},
            "helpUri": f"{HOME}reference/lint-rules/#{name}",
        }
        for name, rule in RULES.items()
    ]
    seen: dict[str, int] = {}
    results = []
    for finding in findings:
        key = "\0".join((finding.rule, finding.path, finding.message))
        seen[key] = seen.get(key, 0) + 1
        fingerprint = hashlib.sha256(f"{key}\0{seen[key]}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
        address = quote(posixpath.join(folder, finding.path), errors="surrogateescape")
        location = {"artifactLocation": {"uri": address}, "region": {"startLine": finding.line}}
        results.append(
            {
                "ruleId": finding.rule,
                "ruleIndex": names.index(finding.rule),
                "level": finding.level,
                "message": {"text": finding.message},
                "locations": [{"physicalLocation": location}],
                "partialFingerprints": {"anvilLint/v1": fingerprint},
            }
        )
    driver = {"name": "anvil lint", "version": __version__, "informationUri": HOME, "rules": rules}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
