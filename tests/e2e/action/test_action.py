"""The action: its steps in order, as a runner runs them, and what it and the workflows promise on paper."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import anvil
from anvil.ci import program_key
from anvil.fetch.attestation import AttestationRule
from anvil.fetch.fetch_index import FetchRequest, fetch
from anvil.index_file import manifests, publish
from tests.conftest import PAGES, write
from tests.support import html_sites, in_process
from tests.support.action_runner import OFFLINE, STANDS, Job
from tests.support.commits import program_folder
from tests.support.dependency_servers import repository
from tests.support.environments import wheel as built
from tests.support.environments import without_model
from tests.support.index_server import serving
from tests.support.programs import environment, program
from tests.support.repositories import commit, isolated, run

__all__ = ["isolated"]
ROOT = Path(__file__).resolve().parents[3]
ACTION = ROOT / "action.yml"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
LINT, TEST = "Lint the documentation", "Test the documentation"
IMPACT = "Name the documentation that the change makes wrong"
ATTEST, BESIDE = "Attest where the index comes from", "Put the attestation beside the index"
DEPS = [f"{what} the documentation of dependencies" for what in ("Restore", "Sync", "Keep")]
NewJob = Callable[..., Job]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Anvil as a wheel, for the action's input ``package``."""
    return str(without_model(built(tmp_path_factory.getbasetemp()), tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the step that installs leaves, as far as the later steps see it: the program. Tests that take ``wheel``, and
    the first test, run that step."""
    folder = tmp_path_factory.mktemp("installed") / "anvil"
    program_folder(folder / "bin")
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository of four pages, where neither spaces nor umlauts are spared."""
    folder = tmp_path / "mein Projekt äöü"
    write(folder / "docs", PAGES)
    write(folder, {".gitignore": ".anvil/\n"})
    run(folder, "init", "-q", "-b", "main")
    commit(folder, "first", at=1_700_000_000)
    return folder


@pytest.fixture
def job(checkout: Path, tmp_path: Path, request: pytest.FixtureRequest) -> NewJob:
    """Makes jobs: each with a fresh checkout and temporary folder, all with the same caches and artifacts.

    Anvil is installed in them already; for tests that take ``wheel`` the step that installs does it each time.
    """
    if os.name == "nt":
        pytest.skip("the steps are run by a bash with POSIX paths, as on GitHub's Linux and macOS runners")
    made: list[Job] = []
    there = None if "wheel" in request.fixturenames else request.getfixturevalue("installed")

    def new(event: str = "push", **environment: str) -> Job:
        run(checkout, "clean", "-qfdx")
        temp = tmp_path / "läufer temp" / str(len(made))
        caches, artifacts = tmp_path / "services/caches", tmp_path / f"services/artifacts of run {len(made)}"
        for folder in (temp, caches, artifacts):
            folder.mkdir(parents=True, exist_ok=True)
        made.append(Job(checkout, temp, caches, artifacts, event, {**OFFLINE, **environment}, STANDS, there))
        return made[-1]

    return new


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def scratch(checkout: Path, where: Path, provider: str = "local") -> Path:
    """The index of the checkout as one would build it by hand, from nothing."""
    with anvil.open(checkout / "docs", where, provider) as opened:
        opened.index()
    return where


# --- build -------------------------------------------------------------------------------------------------------


def test_builds_installs_uploads_and_keeps(checkout: Path, job: NewJob, tmp_path: Path) -> None:
    action = tmp_path / "_actions/anvil docs/anvil/v1 ñ"  # as fetched: a copy, whose own source is installed
    for name in ("action.yml", "pyproject.toml", "README.md", "LICENSE"):
        action.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, action / name)
    for package in ("anvil", "mkdocs_anvil"):
        ignored = shutil.ignore_patterns("__pycache__", "*.onnx")  # the next test embeds; a wheel of 32 MB takes 2 s
        shutil.copytree(ROOT / package, action / package, ignore=ignored)

    first = job()
    first.installed = None
    done = first.use(action, provider="none")
    assert done.succeeded, done.log
    assert [name for name, outcome in done.steps.items() if outcome == "skipped"] == [
        *DEPS,
        LINT,
        IMPACT,
        TEST,
        ATTEST,
        BESIDE,
    ]
    index = checkout / "docs/.anvil/index.db"
    assert done.outputs["index-path"] == str(index)
    assert (done.outputs["pages"], done.outputs["changed"]) == ("4", "true")
    assert (done.outputs["chunks"], done.outputs["embedded"]) == ("13", "0")
    assert done.outputs["artifact-id"] == "1" and done.outputs["artifact-url"].startswith("https://")
    assert done.summary.startswith("## Documentation index: built\n") and "| Pages | 4 |" in done.summary
    assert run(checkout, "status", "--porcelain") == ""

    uploaded = first.artifacts / "anvil-index"
    assert sorted(path.name for path in uploaded.iterdir()) == ["index.db", "index.json"]
    assert sha256(uploaded / "index.db") == sha256(index) == sha256(scratch(checkout, tmp_path / "by-hand.db", "none"))
    told = manifests.parse((uploaded / "index.json").read_text(encoding="utf-8"), "index.json")
    assert told == publish.describe(uploaded / "index.db")
    assert (told.digest, told.commit) == (done.outputs["digest"], run(checkout, "rev-parse", "HEAD"))

    program = first.temp / "anvil/bin/anvil"
    assert first.temp in Path(anvil_of(program, first)).parents, "the program is the one that was installed"


def test_a_site_is_indexed_with_its_sources(checkout: Path, job: NewJob) -> None:
    work = job()
    site = html_sites.site(checkout / "site")
    html_sites.docs(checkout / "pages")
    done = work.use(ROOT, site="site", docs="pages", provider="none")
    assert done.succeeded, done.log
    assert done.outputs["index-path"] == str(site / "anvil/index.db") and done.outputs["pages"] == "3"
    assert "left out 404.html: it is the page for addresses that do not exist" in done.log
    again = work.use(ROOT, site="site", docs="pages", provider="none", markdown="true", upload="false")
    assert again.succeeded and "Markdown of 3 pages in 7 files: 7 written." in again.log, again.log
    assert (site / "guide/install.md").is_file() and not (site / "404.md").exists()
    write(checkout / "pages", {"index.md": "# Start\n\nEdited.\n"})
    stale = work.use(ROOT, site="site", docs="pages", provider="none", mode="check")
    assert not stale.succeeded and "Build the site, and run 'anvil build" in stale.log and " --site site'" in stale.log


def anvil_of(program: Path, job: Job) -> str:
    code = "import anvil; print(anvil.__file__)"
    python = program.read_text(encoding="utf-8").splitlines()[0].removeprefix("#!")
    done = subprocess.run(
        [python, "-c", code],
        env={"PYTHONPATH": str(job.temp / "anvil")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=job.temp,
    )
    return done.stdout.strip()


def test_embeds_only_what_changed(checkout: Path, job: NewJob, tmp_path: Path) -> None:
    first = job().use(ROOT)
    assert (first.outputs["chunks"], first.outputs["embedded"]) == ("13", "13")
    before = sha256(Path(first.outputs["index-path"]))

    write(checkout, {"code.py": "pass\n"})
    commit(checkout, "no page", at=1_700_000_100)
    second_job = job()
    second = second_job.use(ROOT)
    assert second.succeeded, second.log
    assert (second.outputs["changed"], second.outputs["embedded"]) == ("false", "0")
    assert sha256(Path(second.outputs["index-path"])) == before, "not even the commit it tells is another"
    assert sha256(second_job.artifacts / "anvil-index/index.db") == before, "each run has an artifact"
    assert second.steps["Keep the index for the next run"] == "skipped"
    assert second.summary.startswith("## Documentation index: unchanged\n")

    write(checkout / "docs", {"guides/alerts.md": PAGES["guides/alerts.md"].replace("a second message", "a message")})
    commit(checkout, "one page", at=1_700_000_200)
    third = job().use(ROOT)
    assert (third.outputs["changed"], third.outputs["embedded"]) == ("true", "1")
    assert "| `guides/alerts.md` | changed | `Alerts` |" in third.summary
    assert f"| Passages reused | {int(first.outputs['embedded']) - 1} |  |" in third.summary
    assert sha256(Path(third.outputs["index-path"])) == sha256(scratch(checkout, tmp_path / "by-hand.db"))


def test_reuses_named_indexes(checkout: Path, job: NewJob, tmp_path: Path) -> None:
    older = tmp_path / "frühere"
    for number, pages in enumerate((["index.md", "install.md"], ["guides/alerts.md", "guides/checks.md"])):
        write(older / f"{number}/docs", {path: PAGES[path] for path in pages})
        with anvil.open(older / f"{number}/docs", older / f"{number}.db") as opened:
            opened.index()
    done = job().use(
        ROOT,
        cache="false",
        upload="false",
        previous=f"{older}/*.db\n{older}/none.db\n",
    )
    assert done.succeeded, done.log
    assert (done.outputs["embedded"], done.outputs["changed"]) == ("0", "true")
    assert done.outputs["artifact-id"] == done.outputs["artifact-url"] == ""
    assert [
        done.steps[name] for name in ("Restore the last index", "Keep the index for the next run", "Upload the index")
    ] == ["skipped"] * 3
    assert [(each.level, each.message) for each in done.annotations] == [
        ("warning", f"There is no previous index at {older}/none.db: its vectors cannot be reused.")
    ]
    assert sha256(Path(done.outputs["index-path"])) == sha256(scratch(checkout, tmp_path / "by-hand.db"))


def test_reuses_what_is_published(checkout: Path, job: NewJob, tmp_path: Path) -> None:
    with serving() as site:
        site.publish(scratch(checkout, tmp_path / "site" / "index.db"))
        done = job(HOME=os.environ["HOME"]).use(ROOT, cache="false", previous=f"{site.url}/docs/\n{site.url}/")
    assert done.succeeded and (done.outputs["embedded"], done.outputs["changed"]) == ("0", "false"), done.log
    (told,) = done.annotations
    assert told.level == "warning" and told.message.startswith("The previous index cannot be fetched: ")
    assert f"The previous index is from {site.url}/, built from commit" in done.log


def test_shards_of_a_matrix_are_joined_to_the_bytes_of_one_build(checkout: Path, job: NewJob, tmp_path: Path) -> None:
    def shards() -> list[str]:
        numbers, embedded = (1, 2), []
        shutil.rmtree(tmp_path / "shards", ignore_errors=True)
        for number in numbers:
            one = job()
            one.environment["GITHUB_REPOSITORY"] = "o/r"
            done = one.use(ROOT, shard=f"{number}/2", artifact_name=f"shard-{number}")
            assert done.succeeded and "anvil pull" not in done.summary, done.log  # a shard alone is no index to fetch
            embedded.append(done.outputs["embedded"])
            shutil.copytree(one.artifacts, tmp_path / "shards", dirs_exist_ok=True)  # as download-artifact does
        return embedded

    def joined() -> tuple[str, str]:
        last = job()
        last.environment["GITHUB_REPOSITORY"] = "o/r"
        done = last.use(ROOT, previous=f"{tmp_path}/shards/*/index.db", cache="false")
        assert done.succeeded and not done.annotations and "anvil pull" in done.summary, done.log
        return done.outputs["embedded"], sha256(Path(done.outputs["index-path"]))

    assert sum(map(int, shards())) == 13
    assert joined() == ("0", sha256(scratch(checkout, tmp_path / "one.db")))
    write(checkout / "docs", {"install.md": PAGES["install.md"].replace("Run the installer.", "Start the installer.")})
    commit(checkout, "one page", at=1_700_000_100)
    assert sorted(shards()) == ["0", "1"]
    assert joined() == ("0", sha256(scratch(checkout, tmp_path / "two.db")))
    merged = program("merge", tmp_path / "merged.db", *sorted(tmp_path.glob("shards/*/index.db")))
    assert merged.stdout and sha256(tmp_path / "merged.db") == sha256(tmp_path / "two.db")


def test_two_indexes_in_one_job_keep_apart(checkout: Path, job: NewJob) -> None:
    write(checkout / "manual", {"a.md": "# A\n\nAnother folder.\n"})
    commit(checkout, "two", at=1_700_000_100)
    one = job()
    done = [one.use(ROOT, docs=docs, artifact_name=docs, provider="none") for docs in ("docs", "manual")]
    assert [each.outputs["pages"] for each in done] == ["4", "1"]
    assert [each.outputs["artifact-id"] for each in done] == ["1", "2"]
    again = job()
    done = [again.use(ROOT, docs=docs, artifact_name=docs, provider="none") for docs in ("docs", "manual")]
    assert [each.outputs["changed"] for each in done] == ["false", "false"]
    assert sorted(path.name for path in (again.artifacts / "manual").iterdir()) == ["index.db", "index.json"]


def test_a_pull_request_from_a_fork_needs_no_secret_and_no_right(job: NewJob) -> None:
    done = job("pull_request").use(ROOT, provider="none", attest="true")
    assert done.succeeded and done.steps[ATTEST] == "skipped", done.log
    assert done.outputs["artifact-id"] == "1"
    assert done.steps[BESIDE] == "skipped" and done.outputs["attestation-path"] == ""


def test_an_attestation_is_written_beside_the_index_and_verifies(job: NewJob, tmp_path: Path) -> None:
    pushed = job("push")
    done = pushed.use(ROOT, provider="none", attest="true")
    assert done.succeeded and done.steps[ATTEST] == done.steps[BESIDE] == "success", done.log
    index = Path(done.outputs["index-path"])
    assert done.outputs["attestation-path"] == f"{index}.sigstore.json"
    rule = AttestationRule(True, "acme/docs", str(pushed.sigstore.write_root(tmp_path)))
    found = fetch(index, FetchRequest(attested=rule)).attestation
    assert found is not None and found.repository == "acme/docs"


def test_the_documentation_of_dependencies_is_synced_and_cached(
    checkout: Path, job: NewJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = repository(tmp_path / "beacon", {"docs/index.md": "# Beacons\n\nThey send signals.\n"})
    settings = {
        "XDG_CACHE_HOME": str(tmp_path / "user's cache"),
        "ANVIL_EMBEDDING_PROVIDER": "none",
        "ANVIL_DEPS_ALLOW_PRIVATE_URLS": "true",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    added = in_process.program("deps", "add", "pypi:beacon==1.0.0", "--repository", upstream.as_uri(), cwd=checkout)
    assert "beacon 1.0.0 added" in added.stdout
    commit(checkout, "locked", at=1_700_000_100)
    order = {"deps": "true", "upload": "false"}

    shutil.rmtree(tmp_path / "user's cache")
    done = job(**settings).use(ROOT, **order)
    assert done.succeeded and [done.steps[name] for name in DEPS] == ["success"] * 3, done.log
    assert (
        "## Documentation of dependencies\n\n| package |" in done.summary and "| `beacon 1.0.0` | 1 |" in done.summary
    )

    shutil.rmtree(tmp_path / "user's cache")
    upstream.rename(tmp_path / "gone")  # so that it can come from the cache only
    done = job(**settings).use(ROOT, **order)
    assert done.succeeded and [done.steps[name] for name in DEPS] == ["success", "success", "skipped"], done.log

    upstream = repository(tmp_path / "gone", {"docs/index.md": "# Beacons\n\nNew in two.\n"}, "v2.0.0")
    in_process.program("deps", "add", "pypi:beacon==2.0.0", "--repository", upstream.as_uri(), cwd=checkout)
    in_process.program("deps", "remove", "beacon==1.0.0", cwd=checkout)
    commit(checkout, "version two", at=1_700_000_150)
    done = job(**settings).use(ROOT, **order)
    assert done.succeeded and [done.steps[name] for name in DEPS] == ["success"] * 3, done.log
    saved = list((tmp_path / "services/caches").glob("anvil-deps-*"))
    assert [len(list(each.rglob("objects/*.db"))) for each in saved] == [1, 1]  # not those of the other lock
    upstream.rename(tmp_path / "gone again")

    shutil.rmtree(tmp_path / "user's cache")
    lost = job(**settings).use(ROOT, **order, cache="false")
    assert not lost.succeeded and [lost.steps[name] for name in DEPS] == ["skipped", "failure", "skipped"]
    assert [(told.level, told.properties["file"]) for told in lost.annotations] == [("error", "anvil.lock")]
    (checkout / "anvil.lock").unlink()
    commit(checkout, "unlocked", at=1_700_000_200)
    (told,) = job(**settings).use(ROOT, **order).annotations
    assert "There is no anvil.lock in " in told.message
    (told,) = job().use(ROOT, mode="check", deps="true").annotations
    assert "'deps' needs the mode 'build'" in told.message


def test_the_configuration_is_heard(checkout: Path, job: NewJob) -> None:
    write(checkout, {"sub/anvil.toml": 'docs = "../docs"\nindex = "../site/docs.db"\n[embedding]\nprovider = "none"\n'})
    commit(checkout, "configured", at=1_700_000_100)
    done = job().use(ROOT, config="sub/anvil.toml", retention_days="3")
    assert done.succeeded, done.log
    assert Path(done.outputs["index-path"]).resolve() == checkout / "site/docs.db" and done.outputs["embedded"] == "0"


def test_nothing_of_the_checkout_is_run_and_a_package_is_installed_again(
    checkout: Path, job: NewJob, wheel: str
) -> None:
    """A package without a version is not kept under a name: the second use installs it over the first. It ends there,
    as its folder does not exist."""
    trap = "raise SystemExit('the checkout was imported')\n"
    write(checkout, {name: trap for name in ("anvil/__init__.py", "pip.py", "click.py", "json.py", "sitecustomize.py")})
    commit(checkout, "traps", at=1_700_000_100)
    python = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    work = job(PATH=python)
    how = {"package": wheel, "provider": "none", "python_version": ""}
    done = work.use(ROOT, **how)
    assert done.succeeded and "the checkout" not in done.log, done.log
    assert done.steps["Install Anvil"] == "success"
    again = work.use(ROOT, docs="handbook", **how)
    assert again.steps["Install Anvil"] == "success" and "the checkout" not in again.log, again.log
    assert again.steps["Plan"] == "failure" and "handbook" in again.annotations[0].message


# --- what goes wrong -----------------------------------------------------------------------------------------------


def test_a_folder_that_is_not_there_fails_in_words(job: NewJob) -> None:
    broken = job()
    done = broken.use(ROOT, docs="handbook")
    assert not done.succeeded
    (told,) = done.annotations
    assert told.level == "error" and "handbook" in told.message and "Traceback" not in done.log
    assert done.summary.startswith("## Documentation index: failed\n")
    assert list(broken.artifacts.iterdir()) == list(broken.caches.iterdir()) == []
    assert {done.steps[name] for name in list(done.steps)[7:]} == {"skipped"}


def test_a_wrong_mode_is_an_error_before_anything_is_installed(job: NewJob) -> None:
    done = job().use(ROOT, mode="deploy")
    assert not done.succeeded and [name for name, how in done.steps.items() if how != "skipped"] == ["Check the mode"]
    (told,) = done.annotations
    assert told.level == "error" and "'build' or 'check'" in told.message


@pytest.mark.parametrize("inputs", [{"comment_stale": "perhaps"}, {"package": "--version"}])
def test_a_wrong_input_fails(job: NewJob, inputs: dict[str, str]) -> None:
    wrong = job()
    wrong.installed = None if "package" in inputs else wrong.installed
    done = wrong.use(ROOT, **{"provider": "none", **inputs})
    assert not done.succeeded and "Upload the index" not in [k for k, v in done.steps.items() if v == "success"]


def test_a_cache_that_is_damaged_is_passed_over(job: NewJob) -> None:
    first = job()
    assert first.use(ROOT, provider="none").succeeded
    (kept,) = first.caches.iterdir()
    (kept / "0/index.db").write_bytes(b"SQLite format 3\0 and nothing more")
    done = job().use(ROOT, provider="none")
    assert done.succeeded and done.outputs["changed"] == "true", done.log
    (told,) = done.annotations
    assert told.level == "warning" and told.message.startswith("The previous index is not used: ")


EVIL = "::error file=x::b%0A::add-mask::c ##[add-mask]d, `|<img src=x>.md"


def test_names_and_titles_command_nothing(checkout: Path, job: NewJob) -> None:
    title = "::set-output name=digest::0 <script>alert(1)</script> | [x](javascript:1) ``` ##[error]e"
    left_out = ("a\n::error::.md", "bin\n::error::.md", "\u202eb\x1b[31m.md")
    write(checkout / "docs", {EVIL: f"# {title}\n\nOne.\n", **dict.fromkeys(left_out, "no heading\n")})
    commit(checkout, "evil", at=1_700_000_100)
    assert job().use(ROOT, provider="none").succeeded
    write(checkout / "docs", {EVIL: f"# {title}\n\nTwo.\n"})
    done = job().use(ROOT, provider="none")
    assert done.succeeded, done.log
    assert [name for name, _ in done.commands] == ["warning"] * 3, "the pages that were left out, and nothing else"
    shown = [each.properties["file"] for each in done.annotations]
    assert sorted(shown) == [r"docs/\u202eb\x1b[31m.md", r"docs/a\n::error::.md", r"docs/bin\n::error::.md"]
    assert done.outputs["pages"] == "5" and re.fullmatch("[0-9a-f]{64}", done.outputs["digest"])
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", done.summary)
    assert "add-mask" in done.summary and "alert(1)" in done.summary
    for part in ("add-mask", "alert", "img", "\u202e", "\x1b", "::"):
        assert part not in outside
    for row in (line for line in done.summary.splitlines() if "add-mask" in line):
        assert len(re.findall(r"(?<!\\)\|", row)) == len(re.findall(r"(?<!\\)\|", heading_of(row, done.summary)))


def heading_of(row: str, summary: str) -> str:
    """The first line of the table that a row belongs to."""
    block = next(block for block in summary.split("\n\n") if row in block.splitlines())
    return block.splitlines()[0]


# --- check -------------------------------------------------------------------------------------------------------


@pytest.fixture
def committed(checkout: Path) -> Path:
    """The same repository, with its index in git."""
    write(checkout, {"anvil.toml": 'index = "docs.anvil.db"\n[embedding]\nprovider = "none"\n'})
    with anvil.open(config=checkout / "anvil.toml") as opened:
        opened.index()
    commit(checkout, "index", at=1_700_000_100)
    return checkout


def test_check_passes_what_is_fresh(committed: Path, job: NewJob) -> None:
    done = job().use(ROOT, mode="check")
    assert done.succeeded and done.annotations == [], done.log
    assert done.outputs["changed"] == "false" and done.outputs["digest"] and done.outputs["artifact-id"] == ""
    assert [name for name, outcome in done.steps.items() if outcome == "success"] == [
        "Check the mode",
        "Set up Python",
        "Name the program",
        "Restore the program",
        "Build or check the index",
    ]
    assert done.summary.startswith("## Documentation index: fresh\n")


def test_check_marks_what_is_stale(committed: Path, job: NewJob) -> None:
    pages = {f"neu, {number}: ja.md": "# Neu\n" for number in range(12)}
    edited = PAGES["install.md"].replace("Run the installer.", "Start the installer.")
    write(committed / "docs", {**pages, "install.md": edited})
    (committed / "docs/index.md").unlink()
    commit(committed, "edits", at=1_700_000_200)
    before = sha256(committed / "docs.anvil.db")
    done = job("pull_request").use(ROOT, mode="check")
    assert not done.succeeded and done.outputs["changed"] == "true"
    warnings = [each for each in done.annotations if each.level == "warning"]
    assert len(warnings) == 10
    line = edited.splitlines().index(next(each for each in edited.splitlines() if "Start the" in each)) + 1
    assert warnings[0].properties == {"file": "docs/install.md", "line": str(line), "title": "Anvil"}
    assert warnings[1].properties["file"] == "docs/neu, 0: ja.md"
    (error,) = [each for each in done.annotations if each.level == "error"]
    assert error.message == (
        "docs.anvil.db is stale: 14 pages differ from the documents. Run 'anvil build' and commit the index."
    )
    assert "| `index.md` | removed |" in done.summary and sha256(committed / "docs.anvil.db") == before
    quiet = job().use(ROOT, mode="check", comment_stale="false")
    assert [each.level for each in quiet.annotations] == ["error"]


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ImportError(f"a check does not install {name}")
sys.meta_path.insert(0, Blocked())
from anvil.cli import program as app
sys.exit(app.run(sys.argv[2:]))
"""


def dependencies(name: str) -> set[str]:
    """The packages that an installed one needs, and that those need, on newer Pythons."""
    lines = [line for line in metadata.requires(name) or () if "extra ==" not in line and "python_version" not in line]
    direct = {re.split(r"[^\w.-]", line)[0].lower() for line in lines}
    return direct.union(*map(dependencies, direct))


def test_a_check_needs_the_packages_that_its_file_names_and_no_other(checkout: Path, tmp_path: Path) -> None:
    """Also of an index with vectors that is stale: then pages are parsed, and neighbours compared."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    all_lines = re.findall(r'^  "(.+)",$', project.split("dependencies = [")[1].split("\n]")[0], re.MULTILINE)
    text = (ROOT / "anvil/ci/check-requirements.txt").read_text(encoding="utf-8")
    light = [line.replace('"', "'") for line in text.splitlines() if not line.startswith("#")]
    assert set(light) < set(all_lines)
    needed = {re.split(r"[\[>;]", line)[0] for line in light if "python_version" not in line}
    for name in sorted(needed):
        needed |= dependencies(name)
    assert f"installs {['ten', 'eleven', 'twelve'][len(needed) - 10]} packages" in (
        ROOT / "docs/guides/ci.md"
    ).read_text(encoding="utf-8")
    names = (re.split(r"[\[>;]", line)[0].replace("-", "_") for line in set(all_lines) - set(light))
    left_out = sorted({"google_re2": "re2", "pyjwt": "jwt"}.get(name, name) for name in names)  # as they are imported
    assert {"onnxruntime", "tokenizers", "mcp"} <= set(left_out)
    index = scratch(checkout, tmp_path / "docs.db")
    write(checkout / "docs", {"install.md": "# Other\n"})
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, ",".join(left_out), "ci", "check", "--index", str(index)],
        cwd=checkout,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1 and "1 page differs" in done.stdout, done.stdout + done.stderr


def test_the_program_is_kept_under_a_name_of_all_that_it_depends_on(tmp_path: Path) -> None:
    source = write(tmp_path, {"pyproject.toml": "", "anvil/__init__.py": "", "mkdocs_anvil/__init__.py": ""})
    names = [program_key.key(source, "build", ""), program_key.key(source, "check", "")]
    names += [program_key.key(source, "check", "anvil-docs==0.1.0")]
    write(source, {"anvil/new.py": ""})
    names += [program_key.key(source, "check", "")]
    (tmp_path / "pins.txt").write_text("numpy==2.1\n")
    names += [program_key.key(source, "check", "", str(tmp_path / "pins.txt"))]
    (tmp_path / "pins.txt").write_text("numpy==2.2\n")
    names += [program_key.key(source, "check", "", str(tmp_path / "pins.txt")), program_key.key(source, "check", "")]
    assert len({*names}) == 6 and program_key.key(source, "check", "") == names[-1]
    assert program_key.key(source, "check", "anvil-docs") == "", "the newest version is another one tomorrow"


PULL = {
    "GITHUB_BASE_REF": "main",
    "GITHUB_HEAD_REF": "topic",
    "GITHUB_REF": "refs/pull/7/merge",
    "GITHUB_SERVER_URL": "https://github.test",
    "GITHUB_REPOSITORY": "o/r",
    "GITHUB_SHA": "0" * 40,
}


def test_a_pull_request_is_compared_with_its_base_and_linked(checkout: Path, job: NewJob) -> None:
    assert job(GITHUB_REF_NAME="main").use(ROOT, provider="none").succeeded
    for number, text in enumerate(("Start the installer.", "Start it.")):  # the second push of the pull request
        write(checkout / "docs", {"install.md": PAGES["install.md"].replace("Run the installer.", text)})
        commit(checkout, "edit", at=1_700_000_200 + number)
        done = job("pull_request", **PULL).use(ROOT, provider="none")
        assert done.succeeded, done.log
        assert "### Changed since `main`" in done.summary
        page = f"[`install.md`](https://github.test/o/r/blob/{'0' * 40}/docs/install.md)"
        assert f"| {page} | changed |" in done.summary
        assert "`anvil pull github:o/r artifact:anvil-index`" in done.summary


def test_a_pull_request_is_told_what_its_change_makes_wrong(checkout: Path, job: NewJob) -> None:
    write(checkout, {"cli.py": 'parser.add_argument("--grace-days")\n'})
    write(checkout / "docs", {"install.md": PAGES["install.md"] + "\n## Grace\n\nSet `--grace-days`.\n"})
    commit(checkout, "a flag", at=1_700_000_100)
    run(checkout, "update-ref", "refs/remotes/origin/main", "HEAD")
    write(checkout, {"cli.py": 'parser.add_argument("--grace-weeks")\n'})
    commit(checkout, "Rename --grace-days", at=1_700_000_200)
    inputs = {"provider": "none", "impact": "true"}
    done = job("pull_request", **{**PULL, "GITHUB_REF": "refs/heads/topic"}).use(ROOT, **inputs)
    assert done.succeeded and done.steps[IMPACT] == "success", done.log
    assert "## Documentation: 1 section may be wrong after this change" in done.summary
    assert [note.properties["file"] for note in done.annotations if note.level == "notice"] == [
        "docs/install.md",
        "cli.py",
    ]
    failed = job("pull_request", **{**PULL, "GITHUB_REF": "refs/heads/topic"}).use(ROOT, provider="none", impact="fail")
    assert not failed.succeeded
    assert job().use(ROOT, **inputs).steps[IMPACT] == "skipped"


QUESTIONS = """\
[defaults]
within = 1
[[question]]
ask = "how long before a certificate expires am I warned"
expect = "guides/checks.md#certificates"
[[question]]
ask = "install it on a Windows server"
expect = "install.md#windows"
"""


def test_a_pull_request_that_makes_questions_unanswerable_fails_and_says_because_of_which_page(
    checkout: Path, job: NewJob
) -> None:
    write(checkout, {"anvil-tests.toml": QUESTIONS})
    commit(checkout, "questions", at=1_700_000_100)
    done = job(GITHUB_REF_NAME="main").use(ROOT, tests="true")
    assert done.succeeded, done.log
    assert "## Questions: all questions are answered as expected\n" in done.summary
    run(checkout, "update-ref", "refs/remotes/origin/main", "HEAD")
    install = PAGES["install.md"].replace("## Windows", "## Elsewhere {#windows}").replace("a Windows service", "one")
    other = "# Install it on a Windows server\n\nInstall it on a Windows server | <b>so</b>.\n"
    write(checkout / "docs", {"install.md": install, "windows.md": other})
    commit(checkout, "edit", at=1_700_000_200)
    done = job("pull_request", **PULL).use(ROOT, tests="anvil-tests.toml")
    assert not done.succeeded and done.steps["Test the documentation"] == "failure"
    assert done.steps["Upload the index"] == "success"
    assert "## Questions: 1 question got worse because of windows.md\n" in done.summary
    row = "| **lost** `install it on a Windows server` | result 1 → result 2 | [`windows.md`](https://github.test/o/r/blob/"
    assert row in done.summary
    (lost,) = [each for each in done.annotations if each.level == "error"]
    assert (lost.properties["file"], lost.properties["line"]) == ("docs/install.md", "16")
    assert "result 1 before, result 2 now. Because windows.md was added and is now result 1." in lost.message
    assert "compared" not in " ".join(each.message for each in done.annotations)
    run(checkout, "update-ref", "-d", "refs/remotes/origin/main")
    write(checkout / "docs", {"windows.md": f"{other}\nSee the installer.\n"})
    commit(checkout, "another edit", at=1_700_000_300)
    done = job("pull_request", **PULL).use(ROOT, tests="true")
    assert not done.succeeded and any("fetch-depth: 0" in each.message for each in done.annotations)
    assert any(each.properties.get("file") == "anvil-tests.toml" for each in done.annotations)


@pytest.mark.parametrize("mode", ["build", "check"])
def test_findings_get_annotations_and_a_section(committed: Path, job: NewJob, mode: str) -> None:
    write(committed / "docs", {"zz.md": "# Z\n\n[x](gone.md) ![](a.png)\n\n## Empty\n"})
    with anvil.open(config=committed / "anvil.toml") as opened:
        opened.index()
    commit(committed, "a broken page", at=1_700_000_200)
    done = job().use(ROOT, mode=mode, lint="error")
    assert not done.succeeded and done.steps["Lint the documentation"] == "failure", done.log
    assert (
        "## Lint: 2 errors, " in done.summary and "| `broken-link` | `Broken link 'gone.md': there is" in done.summary
    )
    found = [each for each in done.annotations if each.properties.get("file") == "docs/zz.md"]
    assert [each.properties["line"] for each in found if each.level == "error"] == ["3", "3"]
    assert any(each.level == "warning" and "[empty-section]" in each.message for each in found)


def test_a_level_that_does_not_exist_is_an_error_before_anything_is_installed(job: NewJob) -> None:
    done = job().use(ROOT, lint="fatal")
    assert not done.succeeded and "The input 'lint' must be" in done.annotations[0].message


def test_questions_need_a_model(job: NewJob) -> None:
    done = job().use(ROOT, mode="check", tests="true")
    assert not done.succeeded and "needs the mode 'build'" in done.annotations[0].message


def test_a_check_in_a_pull_request_compares_with_the_committed_index_of_the_base(committed: Path, job: NewJob) -> None:
    run(committed, "update-ref", "refs/remotes/origin/main", "HEAD")
    write(committed / "docs", {"new.md": "# New\n"})
    with anvil.open(config=committed / "anvil.toml") as opened:
        opened.index()
    commit(committed, "a page and its index", at=1_700_000_200)
    done = job("pull_request", **PULL).use(ROOT, mode="check")
    assert done.succeeded, done.log
    assert "### Changed since `main`" in done.summary and "`new.md`" in done.summary


def test_check_without_an_index_says_so(job: NewJob) -> None:
    done = job().use(ROOT, mode="check")
    assert not done.succeeded
    assert [each.level for each in done.annotations] == ["error"] and "There is no index" in done.annotations[0].message


# --- on paper ------------------------------------------------------------------------------------------------------


def steps(value: Any) -> list[dict[str, Any]]:
    """All steps of an action or a workflow."""
    if isinstance(value, dict):
        own = value.get("steps", [])
        return [*own, *(step for key, each in value.items() if key != "steps" for step in steps(each))]
    return []


@pytest.mark.parametrize("file", [ACTION, *WORKFLOWS], ids=lambda file: file.name)
def test_no_expression_stands_in_a_script(file: Path) -> None:
    for step in steps(yaml.safe_load(file.read_text(encoding="utf-8"))):
        assert "${{" not in step.get("run", "") and "${{" not in step.get("uses", "")


@pytest.mark.parametrize("file", [ACTION, *WORKFLOWS], ids=lambda file: file.name)
def test_actions_of_others_are_pinned_by_commit(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)(?: # (\S+).*)?$", text, re.MULTILINE)
    assert len(used) == len(re.findall(r"\buses:", text)) > 0
    for action, version in used:
        if action == "./":  # this repository's own, as checked out
            assert file != ACTION
        else:
            assert re.fullmatch(r"(actions|docker|pypa)/[\w/-]+@[0-9a-f]{40}", action)
            assert re.fullmatch(r"v\d+\.\d+\.\d+", version)


def test_each_action_is_pinned_once() -> None:
    """One commit for each action in action, workflows and documentation."""
    pins: dict[str, set[str]] = {}
    for file in [ACTION, *WORKFLOWS]:
        for action, at in re.findall(r"uses: (\w+/[\w-]+)[\w/-]*@(\S+)", file.read_text(encoding="utf-8")):
            pins.setdefault(action, set()).add(at)
    assert {action: len(at) for action, at in pins.items()} == dict.fromkeys(pins, 1)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="zizmor needs Python 3.11.")
def test_the_auditor_of_workflows_finds_nothing() -> None:
    command = [tool("zizmor"), "--offline", "--pedantic", "--no-progress", "--color=never", str(ACTION)]
    done = subprocess.run([*command, str(ROOT / ".github")], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("schema", "files"),
    [("github-actions", [ACTION]), ("github-workflows", WORKFLOWS), ("dependabot", [ROOT / ".github/dependabot.yml"])],
)
def test_the_files_keep_githubs_schema(schema: str, files: list[Path]) -> None:
    from check_jsonschema import main  # type: ignore[import-untyped]  # here, as it takes long to import

    assert files
    done = CliRunner().invoke(main, ["--builtin-schema", f"vendor.{schema}", *map(str, files)])
    assert done.exit_code == 0, done.output


def tool(name: str) -> str:
    """A program of the tests' environment."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found, f"{name} comes with the extra 'test'"
    return found


def test_every_workflow_says_what_it_may() -> None:
    for file in WORKFLOWS:
        workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
        assert workflow["permissions"] in ({}, {"contents": "read"}), file
        for name, each in workflow["jobs"].items():
            assert "permissions" in each and each["permissions"] != "write-all", (file.name, name)
