import contextlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anvil.errors import ConfigError
from anvil.impact import change
from anvil.impact.change import Line

MODIFIED = """\
diff --git a/src/a.py b/src/a.py
index 1111111..2222222 100644
--- a/src/a.py
+++ b/src/a.py
@@ -10,3 +10,4 @@ def run(size: int) -> None:
 first
-old
+new
+more
 last
"""


def test_lines_have_their_numbers_and_the_hunk_its_function() -> None:
    (file,) = change.parse_diff(MODIFIED)
    assert (file.path, file.old_path) == ("src/a.py", "src/a.py")
    assert file.removed == (Line(11, "old"),)
    assert file.added == (Line(11, "new"), Line(12, "more"))
    assert file.hunks[0].header == "def run(size: int) -> None:"
    assert file.hunks[0].context == (Line(10, "first"), Line(13, "last"))


def test_the_last_line_counts_also_without_a_line_end() -> None:
    assert change.parse_diff(MODIFIED.rstrip("\n")) == change.parse_diff(MODIFIED)


def test_a_removed_line_of_dashes_is_no_header() -> None:
    text = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n--- comment\n-- more\n+++ plus\n+- kept\n"
    (file,) = change.parse_diff(text)
    assert [line.text for line in file.removed] == ["-- comment", "- more"]
    assert [line.text for line in file.added] == ["++ plus", "- kept"]


def test_a_new_file_a_removed_one_and_a_rename_without_content() -> None:
    text = (
        "diff --git a/new.py b/new.py\nnew file mode 100644\nindex 0000000..1111111\n--- /dev/null\n+++ b/new.py\n"
        "@@ -0,0 +1 @@\n+x\n"
        "diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "diff --git a/old name.py b/new name.py\nsimilarity index 100%\n"
        "rename from old name.py\nrename to new name.py\n"
    )
    files = change.parse_diff(text)
    assert [(file.path, file.old_path) for file in files] == [
        ("new.py", "new.py"),
        ("gone.py", "gone.py"),
        ("new name.py", "old name.py"),
    ]


def test_binary_files_and_submodules_are_named_and_have_no_lines_that_count() -> None:
    text = (
        "diff --git a/logo.png b/logo.png\nindex 1..2 100644\nBinary files a/logo.png and b/logo.png differ\n"
        "diff --git a/data.bin b/data.bin\nindex 1..2 100644\nGIT binary patch\nliteral 3\n"
        "KcmZQzWMT#Y01f~L\n\nliteral 0\n"
        "diff --git a/vendor/x b/vendor/x\nindex 1111111..2222222 160000\n--- a/vendor/x\n+++ b/vendor/x\n"
        "@@ -1 +1 @@\n-Subproject commit 1111111\n+Subproject commit 2222222\n"
    )
    logo, data, submodule = change.parse_diff(text)
    assert [file.path for file in (logo, data, submodule)] == ["logo.png", "data.bin", "vendor/x"]
    assert not logo.added and not data.added
    assert [file.submodule for file in (logo, data, submodule)] == [False, False, True]


def test_quoted_paths_are_read() -> None:
    old, new = (f'"{side}/caf\\303\\251.py"' for side in "ab")
    text = f"diff --git {old} {new}\n--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+b\n"
    assert change.parse_diff(text)[0].path == "café.py"


@pytest.mark.parametrize("text", ["hello", "def f():\n    return 1\n", "{}", "+++ b\n--- a\n"])
def test_a_text_that_is_no_diff_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="This is not a diff"):
        change.parse_diff(text)


def test_what_git_show_prints_of_a_merge_has_no_diff() -> None:
    with pytest.raises(ConfigError, match="git show -m --first-parent"):
        change.parse_diff("commit 1a2b3c4\nMerge: 5d 6e\n\n    Merge branch 'topic'\n")


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_text_has_no_change(text: str) -> None:
    assert change.parse_diff(text) == ()


def test_a_diff_that_was_cut_keeps_what_is_there() -> None:
    (file,) = change.parse_diff(MODIFIED[:-10])
    assert file.path == "src/a.py"
    assert file.removed == (Line(11, "old"),)


def test_a_huge_file_is_cut() -> None:
    count = change.MAX_FILE_LINES + 10
    added = "".join(f"+{number}\n" for number in range(count))
    (file,) = change.parse_diff(f"--- a/x\n+++ b/x\n@@ -0,0 +1,{count} @@\n{added}")
    assert (len(file.added), file.cut) == (5000, True)


def test_windows_line_ends() -> None:
    (file,) = change.parse_diff(MODIFIED.replace("\n", "\r\n"))
    assert file.removed == (Line(11, "old"),)


def test_the_subject_of_a_mail_or_of_git_show() -> None:
    mail = "From 1 Mon\nFrom: A <a@example.org>\nSubject: [PATCH 1/2] Rename the\n option\n\n---\n" + MODIFIED
    assert change.diff_title(mail) == "Rename the option"
    assert (
        change.diff_title(f"commit 123\nAuthor: A\nDate: now\n\n    Rename it\n\n    Body\n\n{MODIFIED}") == "Rename it"
    )
    assert change.diff_title(MODIFIED) == ""
    assert change.parse_diff(mail) == change.parse_diff(MODIFIED)


@given(st.text(alphabet="+- @a/b\n\\123,diffgt", max_size=300))
@settings(max_examples=200)
def test_no_text_breaks_the_reader(text: str) -> None:
    for head in ("", "diff --git a/x b/x\n", "--- a/x\n+++ b/x\n@@ -1,3 +1,2 @@\n"):
        with contextlib.suppress(ConfigError):
            change.parse_diff(head + text)


def test_it_reads_what_git_writes(tmp_path: Path) -> None:
    """Each kind of change that git knows, with spaces and other characters in names."""

    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True, encoding="utf-8"
        ).stdout

    git("init", "-q")
    (tmp_path / "keep.py").write_text("one\ntwo\nthree\n" * 4)
    (tmp_path / "with space.py").write_text("a\nb\n")
    (tmp_path / "ümlaut.py").write_text("a\n")
    (tmp_path / "move me.py").write_text("same\n" * 30)
    (tmp_path / "data.bin").write_bytes(b"\0\1\2")
    git("add", "-A")
    git("commit", "-qm", "first")
    (tmp_path / "keep.py").write_text("one\n2\nthree\n" * 4)
    (tmp_path / "with space.py").unlink()
    (tmp_path / "ümlaut.py").write_text("b\n")
    (tmp_path / "move me.py").rename(tmp_path / "moved.py")
    (tmp_path / "data.bin").write_bytes(b"\0\3\2")
    (tmp_path / "new.py").write_text("no line end")
    git("add", "-A")
    files = {file.path: file for file in change.parse_diff(git("diff", "--cached", "-M"))}
    assert sorted(files) == ["data.bin", "keep.py", "moved.py", "new.py", "with space.py", "ümlaut.py"]
    assert files["moved.py"].old_path == "move me.py"
    assert not files["data.bin"].hunks
    assert [line.number for line in files["keep.py"].added] == [2, 5, 8, 11]
    assert files["new.py"].added == (Line(1, "no line end"),)


def test_numbers_and_paths_without_end_are_no_error() -> None:
    number = "9" * 6000
    assert change.parse_diff(f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n@@ -{number} +{number} @@\n+c\n")[0].path == "x"
    assert change.parse_diff(f"diff --git a/{'x' * 9000} b/{'x' * 9000}\ndiff --git a/y b/y\n")[0].path == "y"
