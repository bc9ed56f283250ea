"""The bill of materials: valid, complete for what runs, the same twice, and true of the model."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from scripts import project, sbom

MODEL = project.ROOT / "anvil" / "embedding" / "model"


class Made(Distribution):
    """A package that exists on paper."""

    def __init__(self, name: str, *requires: str, more: str = "") -> None:
        needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
        self._text = f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{needs}{more}\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError  # nothing of it is on disk


def closed(*packages: Made) -> dict[str, list[str]]:
    return sbom.closure(packages[0].metadata["Name"], {each.metadata["Name"]: each for each in packages})


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As much of a wheel as the bill looks at: the model."""
    file = tmp_path_factory.mktemp("wheel") / "anvil_docs.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for path in MODEL.iterdir():
            archive.write(path, f"anvil/embedding/model/{path.name}")
    return file


@pytest.fixture(scope="module")
def told(wheel: Path) -> dict[str, Any]:
    """The bill of this environment."""
    found = sbom.text(sbom.bill(wheel, distributions()))
    errors = JsonStrictValidator(SchemaVersion.V1_6).validate_str(found)
    assert errors is None, errors
    bill: dict[str, Any] = json.loads(found)
    return bill


def test_it_names_what_the_package_needs_and_nothing_of_the_tests(told: dict[str, Any], wheel: Path) -> None:
    names = {each["name"] for each in told["components"]}
    assert {"apsw", "onnxruntime", "numpy", "mcp", "starlette", "pydantic-core", "tokenizers"} <= names
    assert not names & {"pytest", "mkdocs", "openai", "markitdown", "ruff", "hypothesis"}
    root = told["metadata"]["component"]
    assert (root["name"], root["version"]) == (project.NAME, project.version()) and root["type"] == "application"
    assert root["licenses"] == [{"license": {"id": "Apache-2.0"}}]
    assert root["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}]
    links = {each["ref"]: set(each.get("dependsOn", ())) for each in told["dependencies"]}
    assert {ref.partition("@")[0] for ref in links[root["bom-ref"]]} >= {"pkg:pypi/apsw", "pkg:pypi/mcp"}
    assert links.keys() == {root["bom-ref"], *(each["bom-ref"] for each in told["components"])}


def test_every_address_is_one(told: dict[str, Any]) -> None:
    every = [told["metadata"]["component"], *told["components"]]
    addresses = [each["url"] for component in every for each in component.get("externalReferences", ())]
    assert len(addresses) > 5
    for address in addresses:
        jsonschema.FormatChecker().check(address, "uri")


def test_every_package_says_its_licence_and_version(told: dict[str, Any]) -> None:
    assert [each["name"] for each in told["components"] if not each.get("licenses") or not each["version"]] == []


def test_the_model_is_a_component_with_licence_and_digest(told: dict[str, Any]) -> None:
    models = {each["name"]: each for each in told["components"] if each["type"] == "machine-learning-model"}
    assert len(models) == 2
    scorer = hashlib.sha256((MODEL / "passages.onnx").read_bytes()).hexdigest()
    assert models["all-MiniLM-L6-v2-docs-passages"]["hashes"] == [{"alg": "SHA-256", "content": scorer}]
    model = models["all-MiniLM-L6-v2-docs"]
    described = json.loads((MODEL / "model.json").read_text(encoding="utf-8"))
    content = hashlib.sha256((MODEL / "model.onnx").read_bytes()).hexdigest()
    assert model["name"] == described["name"] and model["licenses"] == [{"license": {"id": "Apache-2.0"}}]
    assert model["hashes"] == [{"alg": "SHA-256", "content": content}]
    assert {"name": "anvil:model:digest", "value": described["digest"]} in model["properties"]


def test_the_same_environment_gives_the_same_bytes(tmp_path: Path, wheel: Path) -> None:
    """On a system with POSIX paths and on Windows."""
    files = []
    for number, place in enumerate(("lib/python3.12/site-packages", "Lib/site-packages")):
        environment = tmp_path / str(number)
        for package in (Made("needed"), Made(project.NAME, "needed"), Made("pip")):
            about = environment / place / f"{package.metadata['Name'].replace('-', '_')}-1.0.dist-info"
            about.mkdir(parents=True)
            (about / "METADATA").write_text(package.read_text("METADATA") or "", encoding="utf-8")
        files.append(tmp_path / f"{number}.json")
        script: list[str | Path] = [sys.executable, project.ROOT / "scripts" / "sbom.py", wheel, environment, files[-1]]
        subprocess.run(script, check=True, capture_output=True)
    assert files[0].read_bytes() == files[1].read_bytes()
    found = json.loads(files[0].read_bytes())
    assert {each["name"] for each in found["components"]} == {
        "all-MiniLM-L6-v2-docs",
        "all-MiniLM-L6-v2-docs-passages",
        "needed",
    }
    assert found["metadata"]["timestamp"] == "2020-02-02T00:00:00+00:00"


def test_the_time_is_that_of_the_source(monkeypatch: pytest.MonkeyPatch, wheel: Path) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    found = json.loads(sbom.text(sbom.bill(wheel, [Made(project.NAME)])))
    assert found["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"


def test_requirements_are_followed_with_their_extras_and_markers() -> None:
    a = Made("a", "b[fast]>=1", "c; python_version < '3'", "d; extra == 'more'")
    b = Made("b", "e; extra == 'fast'", "f; extra == 'slow'", "a")
    assert closed(a, b, Made("e"), Made("g")) == {"a": ["b"], "b": ["a", "e"], "e": []}


def test_a_package_needed_plainly_and_with_an_extra_has_both() -> None:
    a, b, c = Made("a", "b[fast]", "c"), Made("b", "e; extra == 'fast'"), Made("c", "b")
    assert closed(a, b, c, Made("e"))["b"] == ["e"]
    assert closed(Made("a", "c", "b[fast]"), b, c, Made("e"))["b"] == ["e"]


def test_what_is_missing_fails_rather_than_being_left_out() -> None:
    with pytest.raises(KeyError, match="b"):
        closed(Made("a", "b"))


@pytest.mark.parametrize(
    ("said", "license"),
    [
        ("License-Expression: MIT OR Apache-2.0", {"expression": "MIT OR Apache-2.0"}),
        ("License: MIT", {"license": {"id": "MIT"}}),
        (
            f"License: {'The whole text. ' * 9}\nClassifier: License :: OSI Approved :: BSD License",
            {"license": {"name": "BSD License"}},
        ),
        ("Classifier: License :: OSI Approved :: MIT License", {"license": {"name": "MIT License"}}),
    ],
)
def test_licences_are_what_the_package_declares(said: str, license: dict[str, Any], wheel: Path) -> None:
    bill = json.loads(sbom.text(sbom.bill(wheel, [Made(project.NAME, more=said)])))
    assert bill["metadata"]["component"]["licenses"] == [license]
