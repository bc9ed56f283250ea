"""Pairs of a small repository, and questions for the retrieval benchmark."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

GUIDE = """\
# Guide

## Rotate the signing keys

Keys are rotated once a month by default. The old key stays valid until every client has fetched the new one, which can
take a day. See [how to revoke a key at once](keys.md#revoke) when one was lost.

The interval is a setting of the server, and a rotation can also be started by hand when a person leaves the team.
"""
KEYS = """\
# Keys

## Revoke

A revoked key is refused from the next request on. All sessions that were signed with it end, and their users have to
sign in again. The list of revoked keys is kept for a year.
"""
LATER = """\

The command prints the number of ended sessions, so that you know how many people have to sign in.
"""


def git(folder: Path, *command: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *command], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "docs").mkdir(parents=True)
    git(tmp_path, "init", "-q", "-b", "main", "work")
    (work / "docs" / "guide.md").write_text(GUIDE, encoding="utf-8", newline="\n")
    (work / "docs" / "keys.md").write_text(KEYS, encoding="utf-8", newline="\n")
    git(work, "add", ".")
    git(work, "commit", "-q", "-m", "Import the pages of the wiki")
    (work / "docs" / "keys.md").write_text(KEYS + LATER, encoding="utf-8", newline="\n")
    git(work, "commit", "-q", "-a", "-m", "docs: say how many sessions a revocation ended (#12)")
    (work / "docs" / "keys.md").write_text(KEYS + LATER + "\n", encoding="utf-8", newline="\n")
    git(work, "commit", "-q", "-a", "-m", "Fix typos in the page about keys")
    git(tmp_path, "clone", "-q", "--bare", "work", "clones/acme+keys/repo")
    return tmp_path / "clones"


def test_a_commit_gives_a_pair_and_the_same_one_again(clones: Path, tmp_path: Path) -> None:
    commit = git(tmp_path / "work", "rev-parse", "HEAD")
    program = (
        "import sys, json, mine_pairs; from pathlib import Path;"
        f"project = dict(name='acme/keys', commit='{commit}', folders=['docs']);"
        "print(json.dumps([list(mine_pairs.mine(Path(sys.argv[1]), project, set())) for _ in range(2)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(clones)], cwd=SCRIPTS, capture_output=True, text=True, check=True
    )
    pairs, again = json.loads(done.stdout)
    assert pairs == again
    assert [(kind, page, query) for _, kind, page, query, _ in pairs] == [
        ("commit", "docs/keys.md", "say how many sessions a revocation ended"),
        ("commit", "docs/guide.md", "Import the pages of the wiki"),
    ]


def test_held_out_projects_become_questions_for_the_retrieval_benchmark(clones: Path, tmp_path: Path) -> None:
    commit = git(tmp_path / "work", "rev-parse", "HEAD")
    projects = tmp_path / "projects.toml"
    project = f'name = "acme/keys"\ncommit = "{commit}"\nsplit = "held-out"\nlicence = "MIT"\nfolders = ["docs"]\n'
    projects.write_text(f"[[project]]\n{project}", encoding="utf-8")
    written = tmp_path / "questions.tsv"
    titles = "project\tpage\theadings\ttask\tproblem\tother words\n"
    row = "acme/keys\tdocs/keys.md\tKeys > Revoke\tBlock a stolen key\t\tkick out whoever got hold of it\n"
    written.write_text(titles + row, encoding="utf-8")
    program = (
        "import sys; from pathlib import Path; from scripts import held_out_eval, mine_pairs;"
        "mine_pairs.PROJECTS, mine_pairs.QUESTIONS = map(Path, sys.argv[3:]);"
        "del sys.argv[3:]; held_out_eval.main()"
    )
    given = [str(clones), str(tmp_path / "out"), str(projects), str(written)]
    subprocess.run([sys.executable, "-c", program, *given], cwd=SCRIPTS.parent, capture_output=True, check=True)
    lines = (tmp_path / "out" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines]
    about_keys = [each for each in questions if each["paths"] == ["docs/keys.md"]]
    assert [(each["kind"], each["query"]) for each in about_keys] == [
        ("task", "Block a stolen key"),
        ("other words", "kick out whoever got hold of it"),
        ("commit", "say how many sessions a revocation ended"),
    ]
    assert {(each["corpus"], each["heading"]) for each in about_keys} == {("acme+keys", "Revoke")}
    page = tmp_path / "out" / "corpora" / "acme+keys" / "docs" / "keys.md"
    assert page.read_text(encoding="utf-8") == KEYS + LATER + "\n"


def test_the_written_questions_are_of_known_projects_and_whole() -> None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    listed = tomllib.loads((SCRIPTS / "model_projects.toml").read_text(encoding="utf-8"))["project"]
    with (SCRIPTS / "model_questions.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True))
    assert {row["project"] for row in rows} == {each["name"] for each in listed}
    for row in rows:
        assert None not in row
        assert row["task"] or row["problem"] or row["other words"]


def test_the_projects_are_pinned_licensed_and_no_evaluation_corpus() -> None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    projects = tomllib.loads((SCRIPTS / "model_projects.toml").read_text(encoding="utf-8"))["project"]
    assert {project["split"] for project in projects} == {"train", "held-out"}
    assert all(len(project["commit"]) == 40 and project["licence"] for project in projects)
    names = {project["name"].partition("/")[2].lower() for project in projects}
    assert not names & {
        "argo-cd",
        "prettier",
        "vite",
        "vitepress",
        "pydantic",
        "ruff",
        "fastapi",
        "hugodocs",
        "uv",
        "eslint",
    }
