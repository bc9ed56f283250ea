"""Ignore rules: each path as git itself decides."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from anvil.errors import GitError
from anvil.git.ignore_rules import MAX_RULES_BYTES, IgnoreRules

PATHS = """
a.md b.md keep.md a/a.md a/b.md a/keep.md a/b/a.md a/b/keep.md build/x.md build/a/x.md #h.md !o.md [x].md x\\y.md d7.md
é.md É.md sp\x20.md
""".replace("sp\\x20", "sp ").split()


@pytest.mark.parametrize(
    "files",
    [
        {".gitignore": "*.md\n", "a/.gitignore": "!keep.md\n"},  # libgit2 drops the second rule
        {"exclude": "a/\n", ".gitignore": "!a/\n"},
        {"exclude": "*.md\n", ".gitignore": "!/a/b.md\n"},
        {".gitignore": "a/\n", "a/.gitignore": "!keep.md\n"},  # nothing in an ignored folder is looked at
        {".gitignore": "a/*\n!a/b/\n"},
        {".gitignore": "/a/**/a.md\n**/keep.md\n"},
        {".gitignore": "build/**\n!build/a/\n"},
        {".gitignore": "\ufeffa.md\r\n\r\n# b.md\r\n\\#h.md \r\n\\!o.md\r\n"},
        {".gitignore": "\\[x\\].md\nx\\\\y.md\nd[[:digit:]].md\n"},
        {".gitignore": "[!a-c].md\n?.md\n??.md\n"},  # "é" has two bytes
        {".gitignore": "*\n!*/\n!*.md\nb.md/\n./a.md\n/\n{a,b}.md\n"},
        {".gitignore": "a*/*\n[z-a].md\n[a.md\nb.md\\\n"},
        {".gitignore": "[z-ak].md\n[[:upper:]].md\n***/b/*.md\nbui**/a/x.md\nk**/[\\a-f]p.md\n"},
        {".gitignore": "a/b\n!a/b/a.md\n", "a/b/.gitignore": "!a.md\n"},
        {".gitignore": "A.MD\nBUILD/\nÉ.md\n"},
    ],
)
@pytest.mark.parametrize("ignore_case", [False, True])
def test_each_path_as_git_says(tmp_path: Path, files: dict[str, str], ignore_case: bool) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "config", "core.ignorecase", str(ignore_case)], cwd=tmp_path, check=True)
    for path in PATHS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    exclude = tmp_path / ".git/info/exclude"
    for name, text in files.items():
        (exclude if name == "exclude" else tmp_path / name).write_bytes(text.encode())
    said = subprocess.run(
        ["git", "check-ignore", "-z", "--stdin"], cwd=tmp_path, input="\0".join(PATHS).encode(), capture_output=True
    )
    rules = IgnoreRules(tmp_path, [tmp_path / "none", exclude], ignore_case=ignore_case)
    assert {path for path in PATHS if rules.match(path)} == set(map(os.fsdecode, said.stdout.split(b"\0")[:-1]))


@pytest.mark.parametrize("line", ["*a" * 500, "**/" * 300, "[" * 1000, "\\" * 1001, "a*b\n" * 2000, "!a\na\n" * 2000])
def test_no_rule_takes_long(tmp_path: Path, line: str) -> None:
    (tmp_path / ".gitignore").write_text(line[:MAX_RULES_BYTES])
    rules = IgnoreRules(tmp_path, [], ignore_case=False)
    started = time.thread_time()
    rules.match("a" * 2000 + "/" + "a/" * 1000 + "b")
    assert time.thread_time() - started < 2


def test_a_file_of_rules_has_256_kb_at_most(tmp_path: Path) -> None:
    rules = tmp_path / ".gitignore"
    rules.write_text("*.txt\n" + "#" * 255_994)
    assert IgnoreRules(tmp_path, [], ignore_case=False).match("a.txt")
    rules.write_text("*.txt\n" + "#" * 255_995)
    with pytest.raises(GitError, match="cannot be used"):
        IgnoreRules(tmp_path, [], ignore_case=False).match("a.txt")
