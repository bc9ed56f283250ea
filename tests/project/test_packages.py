"""The wheel and the sdist: what is in them, what they say, and that the same source gives the same bytes."""

from __future__ import annotations

import email
import hashlib
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

import anvil
from scripts import project, release
from tests.support import environments

ROOT = project.ROOT
SOURCES = {".css", ".html", ".js", ".json", ".md", ".onnx", ".py", ".sql", ".svg"}
NAMED = {"LICENSE", "py.typed", "check-requirements.txt", "mcp-ingest.sh"}


class Built(NamedTuple):
    wheel: Path
    sdist: Path

    def members(self) -> set[str]:
        """The files in the wheel."""
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    def metadata(self) -> Message:
        """What the wheel says of itself; its payload is what PyPI shows."""
        with zipfile.ZipFile(self.wheel) as archive:
            return email.message_from_bytes(archive.read(f"anvil_docs-{anvil.__version__}.dist-info/METADATA"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Both, made of a copy with empty models."""
    folder = tmp_path_factory.mktemp("dist")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", environments.EPOCH)
        patch.setattr(release, "ROOT", environments.checkout(tmp_path_factory.mktemp("source") / "anvil") or ROOT)
        return Built(*release.packages(folder, "--no-isolation"))


def checkout() -> set[str] | None:
    """The files of this checkout, but for what git leaves out; None outside git, as in an sdist."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    if done.returncode or not (ROOT / ".git").exists():
        return None
    return {name for name in done.stdout.splitlines() if (ROOT / name).is_file()}


# --- bytes -----------------------------------------------------------------------------------------------------


def test_the_same_source_gives_the_same_wheel_from_the_sdist_and_from_the_checkout(
    built: Built, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = environments.wheel(tmp_path_factory.getbasetemp())
    wheels = (built.wheel, whole)  # the first was made from the sdist
    digests = [
        hashlib.sha256(environments.without_model(each, tmp_path_factory.mktemp("wheel")).read_bytes()).hexdigest()
        for each in wheels
    ]
    assert digests[0] == digests[1]


def test_no_archive_tells_who_or_what_built_it(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        assert {(each.uid, each.gid, each.uname, each.gname) for each in archive} == {(0, 0, "", "")}
        assert {each.mtime for each in archive} == {1_700_000_000}
    with zipfile.ZipFile(built.wheel) as archive:
        assert {each.date_time for each in archive.infolist()} == {(2023, 11, 14, 22, 13, 20)}


# --- contents --------------------------------------------------------------------------------------------------


def test_the_wheel_holds_the_two_packages_and_nothing_else(built: Built) -> None:
    about = f"anvil_docs-{anvil.__version__}.dist-info/"
    inside = {name for name in built.members() if not name.startswith(about)}
    assert ("anvil/index.db" in inside) == (ROOT / "anvil" / "index.db").exists()  # after scripts/docs_index.py
    inside -= {"anvil/index.db"}
    files = checkout()
    own_docs = {f"anvil/own_{name}" for name in files or () if re.fullmatch(r"docs/.*\.md", name)}  # for 'anvil docs'
    assert files is None or inside - own_docs == {
        name for name in files if name.startswith(("anvil/", "mkdocs_anvil/"))
    }
    assert own_docs <= inside
    assert {name.split("/")[0] for name in inside} == {"anvil", "mkdocs_anvil"}
    assert {name for name in inside if Path(name).suffix not in SOURCES and Path(name).name not in NAMED} == set()
    assert {name for name in inside if re.search(r"(^|/)(tests?/|test_|conftest|__pycache__)", name)} == set()


@pytest.mark.parametrize(
    "name",
    [
        "anvil/py.typed",
        "mkdocs_anvil/py.typed",
        "anvil/embedding/model/model.onnx",
        "anvil/index_file/schema.sql",
        "anvil/embedding/model/tokenizer.json",
        "anvil/embedding/model/LICENSE",
        "anvil/library/library.sql",
        "anvil/server/ui/index.html",
        "anvil/server/ui/app.js",
        "anvil/server/ui/style.css",
    ],
)
def test_what_is_no_python_is_in_the_wheel_too(built: Built, name: str) -> None:
    assert name in built.members()


def test_the_sdist_is_the_checkout_without_what_is_only_git_s(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        inside = {each.name.partition("/")[2] for each in archive if each.isfile()}
    files = checkout()
    if files is None:
        pytest.skip("not a git checkout, as in an sdist itself")
    assert inside - files <= {"PKG-INFO", "anvil/index.db"}  # the index is there after scripts/docs_index.py
    left_out = {name for name in files - inside if name.split("/")[0] not in {".gitattributes"}}
    assert left_out == set(), "pyproject.toml, [tool.hatch.build.targets.sdist], should name it"


# --- what it says of itself ------------------------------------------------------------------------------------


def test_there_is_one_version(built: Built) -> None:
    assert built.metadata()["Version"] == anvil.__version__ == project.version()
    assert "version" not in project.table() and "version" in project.table()["dynamic"]


def test_pypi_accepts_it_and_can_show_it(built: Built) -> None:
    command = [sys.executable, "-m", "twine", "check", "--strict", str(built.wheel), str(built.sdist)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_of_the_readme_lead_somewhere_from_pypi(built: Built) -> None:
    shown = built.metadata().get_payload()
    assert isinstance(shown, str)
    targets = re.findall(r"\]\(([^)\s]+)", re.sub(r"^```.*?^```$", "", shown, flags=re.MULTILINE | re.DOTALL))
    assert targets and [each for each in targets if not each.startswith(("https://", "http://", "#"))] == []
    ours = (
        rf"https://(?:github|raw\.githubusercontent)\.com/{project.OWNER}/{project.REPOSITORY}/(?:blob/)?v([^/]+)/(.+)"
    )
    found = [match for each in targets if (match := re.match(ours, each))]
    assert found
    for match in found:
        assert match[1] == anvil.__version__ and (ROOT / match[2].partition("#")[0]).exists(), match[0]


def test_the_registry_of_mcp_servers_finds_its_line(built: Built) -> None:
    assert f"<!-- mcp-name: {project.MCP_NAME} -->" in str(built.metadata().get_payload())


def test_the_metadata_is_complete(built: Built) -> None:
    metadata = built.metadata()
    urls = dict(each.split(", ") for each in metadata.get_all("Project-URL", []))
    assert urls.keys() == {"Homepage", "Documentation", "Source", "Changelog", "Issues", "Security"}
    classifiers = set(metadata.get_all("Classifier", []))
    assert {"Framework :: MkDocs", "Typing :: Typed"} <= classifiers
    assert metadata["License-Expression"] == "Apache-2.0" and metadata["Maintainer"] and metadata["Keywords"]
    assert metadata.get_all("License-File") == ["LICENSE", "anvil/embedding/model/LICENSE"]
    for text in metadata.get_all("License-File", []):
        assert f"anvil_docs-{anvil.__version__}.dist-info/licenses/{text}" in built.members()


def test_both_names_of_the_program_start_it(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        text = archive.read(f"anvil_docs-{anvil.__version__}.dist-info/entry_points.txt").decode()
    assert (
        "anvil = anvil.cli.program:main\nanvil-docs = anvil.cli.program:main\n" in text
    )  # the second for `uvx anvil-docs`
    assert "[mkdocs.plugins]\nanvil = mkdocs_anvil.plugin:AnvilPlugin" in text


def test_pythons_that_are_claimed_are_those_that_are_tried() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    tried = {each["python"] for each in workflow["jobs"]["tests"]["strategy"]["matrix"]["include"]}
    prefix = "Programming Language :: Python :: 3."
    claimed = {each.removeprefix(prefix) for each in project.table()["classifiers"] if each.startswith(prefix)}
    assert tried == {f"3.{minor}" for minor in claimed}
    assert project.table()["requires-python"] == f">=3.{min(claimed, key=int)}"


def test_every_dependency_has_a_lower_bound_and_only_mkdocs_an_upper_one() -> None:
    groups = project.table()["optional-dependencies"]
    shipped = [*project.table()["dependencies"], *(each for name in groups if name != "test" for each in groups[name])]
    shipped = [each.removesuffix(",<2") if each.startswith("mkdocs>") else each for each in shipped]  # 2 has no plugins
    assert [each for each in shipped if not re.fullmatch(r"[\w.-]+(\[[\w,-]+\])?>=[\d.]+(; .+)?", each)] == []


# --- one place names the project -------------------------------------------------------------------------------


def test_the_site_and_the_readme_on_pypi_are_where_the_metadata_says() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert f"site_url: {project.URLS['Homepage']}\n" in site
    assert f"edit_uri: {project.URLS['Source']}/edit/main/docs/\n" in site
    slug = f"{project.OWNER}/{project.REPOSITORY}"
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:github|raw\.githubusercontent)\.com/([\w.-]+/[\w.-]+)", pyproject + site))
    assert named == {slug}


def test_pages_name_the_repository_as_the_metadata_does() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        found = set(re.findall(r"(?:uses: |github\.com/|ghcr\.io/)([\w.-]*anvil[\w.-]*/[\w-]+)", text))
        assert found <= {f"{project.OWNER}/{project.REPOSITORY}"}, page
