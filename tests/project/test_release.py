"""Making a release: what is found not ready, the notes, the checksums, and the workflow that does it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import anvil
from scripts import project, release

ROOT = project.ROOT
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
PUBLISHING = ("pypi", "attest", "github", "image", "registry")
SETTINGS = ("user.name=A", "user.email=a@example.org", "commit.gpgsign=false", "tag.gpgsign=false")


# --- what is not ready -----------------------------------------------------------------------------------------


class Checkout:
    """A copy of this project in a repository of its own, version 1.2.3, ready to be released."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("anvil", "docs", "scripts", "mcpb"):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("model", ".anvil"))
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "action.yml", "LICENSE", ".gitignore"):
            shutil.copy(ROOT / name, root / name)
        self.git("init", "--quiet")
        self.change("anvil/_version.py", f'__version__ = "{anvil.__version__}"', '__version__ = "1.2.3"')
        self.change("CHANGELOG.md", f"## [{anvil.__version__}] - Unreleased", "## [1.2.3] - 2026-11-22")
        for page in (*root.glob("docs/**/*.md"), root / "action.yml", root / "README.md"):
            text = page.read_text(encoding="utf-8")
            text = re.sub(r"(rev: v|anvil-docs==)[\d.]*\d", r"\g<1>1.2.3", text)
            text = re.sub(r"(anvil-docs/anvil@v)\d", r"\g<1>1", text)
            page.write_text(text, encoding="utf-8")
        self.run("server_json.py")
        self.commit()

    def git(self, *arguments: str) -> None:
        settings = [part for each in SETTINGS for part in ("-c", each)]
        subprocess.run(["git", *settings, *arguments], cwd=self.root, check=True, capture_output=True)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "All")

    def change(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text(encoding="utf-8")
        assert old in text, f"{old} is not in {name}"
        (self.root / name).write_text(text.replace(old, new), encoding="utf-8")

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, str(self.root / "scripts" / script), *arguments],
            env=environment,
            cwd=self.root,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )

    def complaints(self, *arguments: str) -> list[str]:
        done = self.run("release.py", "--check", *arguments)
        assert done.stderr == "" and done.returncode == (0 if done.stdout == "1.2.3 is ready.\n" else 1)
        return [] if done.returncode == 0 else done.stdout.splitlines()


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout(tmp_path_factory.mktemp("release") / "project")


@pytest.fixture
def checkout(ready: Checkout) -> Any:
    """The ready one; what a test changes is put back."""
    yield ready
    ready.git("reset", "--hard", "--quiet", "HEAD")


def test_a_project_that_is_ready_is_ready_before_and_on_its_tag(checkout: Checkout) -> None:
    assert checkout.complaints() == []
    checkout.git("tag", "v1.2.3")
    try:
        assert checkout.complaints("--tag", "v1.2.3") == []
        assert checkout.complaints() == ["The tag v1.2.3 exists already: raise anvil.__version__."]
    finally:
        checkout.git("tag", "--delete", "v1.2.3")


@pytest.mark.parametrize(
    ("name", "old", "new", "complaint"),
    [
        ("anvil/_version.py", '"1.2.3"', '"1.2"', "anvil.__version__ is '1.2': write MAJOR.MINOR.PATCH"),
        ("anvil/_version.py", '"1.2.3"', '"1.3.0"', "CHANGELOG.md begins with 1.2.3, and the version is 1.3.0"),
        ("CHANGELOG.md", "2026-11-22", "Unreleased", "CHANGELOG.md says 'Unreleased' where 1.2.3 needs its date"),
        (
            "CHANGELOG.md",
            "## [1.2.3] - 2026-11-22\n",
            "## [1.2.3] - 2026-11-22\n\n## [1.2.2] - 2026-01-01\n",
            "CHANGELOG.md says nothing about 1.2.3.",
        ),
        ("server.json", '"1.2.3"', '"1.2.2"', "server.json is not what the project says"),
        ("README.md", "mcp-name: io.github", "mcp-name: com.github", "README.md lacks the line"),
        ("docs/guides/pre-commit.md", "rev: v1.2.3", "rev: v1.2.2", "docs/guides/pre-commit.md pins 1.2.2: write"),
        ("docs/guides/ci.md", "anvil-docs/anvil@v1", "anvil-docs/anvil@v2", "docs/guides/ci.md uses the action at v2"),
        ("action.yml", "anvil-docs==1.2.3", "anvil-docs==1.2.2", "action.yml pins 1.2.2"),
    ],
)
def test_what_is_not_ready_is_named_with_what_to_do(
    checkout: Checkout, name: str, old: str, new: str, complaint: str
) -> None:
    checkout.change(name, old, new)
    found = checkout.complaints()
    assert any(each.startswith(complaint) for each in found), found
    assert any(each.startswith("There are changes that are not committed") for each in found)


def test_a_tag_of_another_version_or_commit_is_refused(checkout: Checkout) -> None:
    assert checkout.complaints("--tag", "v1.2.4") == [
        "The tag is v1.2.4, and the version is 1.2.3: tag v1.2.3, or raise anvil.__version__."
    ]
    checkout.git("tag", "v1.2.3")
    checkout.git("commit", "--quiet", "--allow-empty", "--message", "One more")
    try:
        found = checkout.complaints("--tag", "v1.2.3")
        assert found == ["The tag v1.2.3 is not the commit that is checked out."]
    finally:
        checkout.git("reset", "--hard", "--quiet", "HEAD~1")
        checkout.git("tag", "--delete", "v1.2.3")


# --- the changelog ---------------------------------------------------------------------------------------------


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    first = release.HEADING.search((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert first and first["version"] == anvil.__version__


def test_the_notes_are_the_section_of_the_version() -> None:
    text = "# Changes\n\n## [2.0.0] - 2026-02-01\n\n### Added\n\n- That.\n\n## [1.0.0] - 2026-01-01\n\n- All.\n"
    assert release.notes(text, "2.0.0") == "### Added\n\n- That.\n"
    assert release.notes(text, "1.0.0") == "- All.\n"
    assert release.notes(text, "3.0.0") == ""


def test_the_notes_of_this_version_are_printed() -> None:
    done = subprocess.run([sys.executable, "scripts/release.py", "--notes"], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.startswith("### Added\n") and "\n## [" not in done.stdout


# --- files -----------------------------------------------------------------------------------------------------


def test_checksums_are_those_that_sha256sum_reads(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_bytes(b"b")
    (tmp_path / "a.mcpb").write_bytes(b"a")
    release.sums(tmp_path)
    release.sums(tmp_path)  # a second time says the same: its own file is left out
    a, b = (hashlib.sha256(content).hexdigest() for content in (b"a", b"b"))
    assert (tmp_path / "SHA256SUMS").read_text() == f"{a}  a.mcpb\n{b}  b.whl\n"
    if shutil.which("sha256sum"):
        checked = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
        subprocess.run(checked, cwd=tmp_path, check=True, capture_output=True)


def test_a_folder_with_something_in_it_is_not_built_into(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(SystemExit, match="is not empty"):
        release.build(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]


# --- the workflow ----------------------------------------------------------------------------------------------


def before(job: str) -> set[str]:
    """The jobs that must have succeeded before a job."""
    needs = WORKFLOW["jobs"][job].get("needs", [])
    direct = {needs} if isinstance(needs, str) else set(needs)
    return direct.union(*(before(each) for each in direct))


@pytest.mark.parametrize("job", PUBLISHING)
def test_nothing_is_published_that_was_not_tried(job: str) -> None:
    assert {"build", "try", "bundle"} <= before(job)


def test_the_registry_comes_last_since_it_looks_at_the_others() -> None:
    assert before("registry") == WORKFLOW["jobs"].keys() - {"registry"}


def test_each_job_may_do_what_it_does_and_no_more() -> None:
    assert WORKFLOW["permissions"] == {}
    granted = {
        name: {scope for scope, level in job["permissions"].items() if level == "write"}
        for name, job in WORKFLOW["jobs"].items()
    }
    assert granted == {
        "build": set(),
        "try": set(),
        "bundle": set(),
        "pypi": {"id-token"},
        "attest": {"id-token", "attestations"},
        "github": {"contents"},
        "image": {"packages", "id-token", "attestations"},
        "registry": {"id-token"},
    }


def sums_step(job: str) -> dict[str, Any]:
    """The step of a job that looks at the files, which comes before any other that could use them."""
    steps = WORKFLOW["jobs"][job]["steps"]
    fetched = next(n for n, step in enumerate(steps) if step.get("with", {}).get("name") == "release")
    for step in steps[:fetched]:
        assert re.match(r"actions/(checkout|download-artifact)@", step["uses"]), step
    assert steps[fetched]["with"]["path"] == "release"
    found: dict[str, Any] = steps[fetched + 1]
    return found


def test_whoever_publishes_has_compared_the_files_with_what_was_built() -> None:
    fetching = {
        name
        for name, job in WORKFLOW["jobs"].items()
        if any(step.get("with", {}).get("name") == "release" and "download" in step["uses"] for step in job["steps"])
    }
    assert fetching == {"try", "bundle", *PUBLISHING}
    first = sums_step("pypi")
    assert first["env"] == {"SUMS": "${{ needs.build.outputs.sums }}"} and first["working-directory"] == "release"
    for job in PUBLISHING:
        assert sums_step(job) == first, job
        assert "build" in WORKFLOW["jobs"][job]["needs"], f"{job} cannot read what build says"
    notes = next(step for step in WORKFLOW["jobs"]["github"]["steps"] if step["name"] == "Release")
    assert notes["run"].startswith('echo "$NOTES  notes/notes.md" | sha256sum --check --strict\n')
    assert notes["env"]["NOTES"] == "${{ needs.build.outputs.notes }}"


@pytest.mark.skipif(not shutil.which("sha256sum") or not shutil.which("bash"), reason="as the runner has them")
def test_files_that_were_changed_on_the_way_are_refused(tmp_path: Path) -> None:
    """What the steps run: the one that seals, and the one that looks, on files that are changed in between."""
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "a.whl").write_bytes(b"a")
    (folder / "b.mcpb").write_bytes(b"b")
    release.sums(folder)
    (tmp_path / "notes.md").write_text("- That.\n")
    seal = next(step for step in WORKFLOW["jobs"]["build"]["steps"] if step.get("id") == "seal")
    told = tmp_path / "output"
    run = ["bash", "-e", "-c"]
    subprocess.run([*run, seal["run"]], cwd=tmp_path, check=True, env={**os.environ, "GITHUB_OUTPUT": str(told)})
    said = dict(line.split("=") for line in told.read_text().splitlines())
    assert set(said) == set(WORKFLOW["jobs"]["build"]["outputs"])
    assert said["notes"] == hashlib.sha256(b"- That.\n").hexdigest()

    def refused(sums: str = said["sums"]) -> bool:
        done = subprocess.run(
            [*run, sums_step("pypi")["run"]], cwd=folder, capture_output=True, env={**os.environ, "SUMS": sums}
        )
        return done.returncode != 0

    assert not refused()
    assert refused("") and refused("0" * 64)
    (folder / "c.whl").write_bytes(b"c")
    assert refused(), "a file that nobody built"
    release.sums(folder)
    assert refused(), "with sums of its own"
    (folder / "c.whl").unlink()
    release.sums(folder)
    assert not refused()
    (folder / "a.whl").write_bytes(b"another")
    assert refused(), "another file"
    release.sums(folder)
    assert refused(), "with sums of its own"
    (folder / "a.whl").unlink()
    assert refused(), "a file that is gone"


def test_what_runs_beside_our_own_code_is_named_by_its_digest() -> None:
    given = {step["name"]: step["with"] for step in WORKFLOW["jobs"]["image"]["steps"] if "with" in step}
    images = (
        given["Set up QEMU"]["image"],
        given["Set up Buildx"]["driver-opts"].removeprefix("image="),
        given["Build and push"]["sbom"].removeprefix("generator="),
    )
    for image in images:
        assert re.fullmatch(r"docker\.io/[\w/-]+:[\w.-]+@sha256:[0-9a-f]{64}", image), image
    script = (ROOT / "scripts" / "install_node_clients.sh").read_text(encoding="utf-8")
    listed = re.search(r"packages=\(([^)]+)\)", script)
    assert listed
    for package in listed[1].split():
        assert re.fullmatch(r"(@[\w-]+/)?[\w-]+@\d+\.\d+\.\d+(-alpha\.\d+)?", package), package


def test_it_is_built_once() -> None:
    building = [
        name for name, job in WORKFLOW["jobs"].items() if any("--build" in step.get("run", "") for step in job["steps"])
    ]
    assert building == ["build"]


def test_the_packages_are_tried_on_the_oldest_and_newest_python() -> None:
    tried = {each["python"] for each in WORKFLOW["jobs"]["try"]["strategy"]["matrix"]["include"]}
    minors = [int(found[1]) for each in project.table()["classifiers"] if (found := re.search(r":: 3\.(\d+)$", each))]
    assert tried == {f"3.{min(minors)}", f"3.{max(minors)}"}


def test_scripts_that_it_runs_exist_and_can_be_run() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    scripts = set(re.findall(r"(?<![\w/])scripts/[\w.]+", text))
    assert scripts
    for name in scripts:
        assert (ROOT / name).exists(), name
        assert name.endswith(".py") or os.access(ROOT / name, os.X_OK), name


def test_names_in_it_are_the_project_s() -> None:
    image = next(job for name, job in WORKFLOW["jobs"].items() if name == "image")
    push = next(step["with"] for step in image["steps"] if step["name"] == "Build and push")
    assert all(tag.startswith(f"{project.IMAGE}:") for tag in push["tags"].splitlines())
    assert f"io.modelcontextprotocol.server.name={project.MCP_NAME}\n" in push["labels"]
    assert WORKFLOW["jobs"]["pypi"]["environment"]["url"].endswith(f"/{project.NAME}/")
