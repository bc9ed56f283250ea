"""The bill of materials of a release, CycloneDX 1.6: the package, what it needs to run, and the model inside.

    python scripts/sbom.py WHEEL ENVIRONMENT FILE      ENVIRONMENT: a virtual environment with the wheel installed

What it needs is what is installed there, followed from requirement to requirement, without extras; so it is true for
the Python and the system of that environment. The same environment gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import uuid
import zipfile
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from importlib.metadata import Distribution, distributions
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType, Pedigree
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.project import NAME, URLS

EPOCH = 1580601600
"""The time that hatchling writes into archives when ``SOURCE_DATE_EPOCH`` is not set; used likewise."""
LICENSES = LicenseFactory()
REFERENCES = {
    "Homepage": ExternalReferenceType.WEBSITE,
    "Documentation": ExternalReferenceType.DOCUMENTATION,
    "Source": ExternalReferenceType.VCS,
    "Issues": ExternalReferenceType.ISSUE_TRACKER,
    "Changelog": ExternalReferenceType.RELEASE_NOTES,
    "Security": ExternalReferenceType.SECURITY_CONTACT,
}


def bill(wheel: Path, packages: Iterable[Distribution]) -> Bom:
    """The bill of a wheel of ours that is among the packages installed. KeyError when what it needs is not there."""
    installed: dict[str, Distribution] = {}
    for package in packages:  # the first on the path is the one that is imported
        installed.setdefault(canonicalize_name(package.metadata["Name"]), package)
    needs = closure(NAME, installed)
    parts = {name: component(installed[name]) for name in needs}
    root, models = parts.pop(NAME), bundled(wheel)
    root.type = ComponentType.APPLICATION
    root.hashes.add(digest(wheel.read_bytes()))
    root.external_references.update(
        ExternalReference(type=kind, url=XsUri(URLS[name])) for name, kind in REFERENCES.items()
    )
    moment = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH") or EPOCH), timezone.utc)
    found = Bom(components=[*parts.values(), *models], metadata=BomMetaData(component=root, timestamp=moment))
    found.register_dependency(root, [*(parts[name] for name in needs[NAME]), *models])
    for name, part in parts.items():
        found.register_dependency(part, [parts[each] for each in needs[name]])
    said = "\n".join(sorted(str(each.purl) for each in [root, *parts.values(), models[0]]))
    found.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, said)
    return found


def closure(root: str, installed: Mapping[str, Distribution]) -> dict[str, list[str]]:
    """Name -> names of what it needs here, for a package and all that follows from it."""
    found: dict[str, list[str]] = {}
    waiting = [(root, frozenset[str]())]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        needed = set(found.get(name, ()))
        for text in installed[name].requires or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                each = (canonicalize_name(requirement.name), frozenset(requirement.extras))
                needed.add(each[0])
                if each not in seen:
                    seen.add(each)
                    waiting.append(each)
        found[name] = sorted(needed)
    return found


def component(distribution: Distribution) -> Component:
    """A package as a component, with the licence that it declares."""
    metadata = distribution.metadata.json
    name = canonicalize_name(distribution.metadata["Name"])
    purl = PackageURL("pypi", name=name, version=distribution.version)
    said = str(metadata.get("license_expression") or metadata.get("license") or "")
    if not said or len(said) > 100:  # nothing, or a licence's whole text: what it is classified as
        classified = metadata.get("classifier", ())
        said = " and ".join(sorted(each.split(" :: ")[-1] for each in classified if each.startswith("License ::")))
    licenses = [LICENSES.make_from_string(said)] if said else []
    return Component(
        name=name,
        version=distribution.version,
        description=str(metadata.get("summary", "")),
        purl=purl,
        bom_ref=str(purl),
        licenses=licenses,
    )


def bundled(wheel: Path) -> list[Component]:
    """The models in the wheel: for embedding, and the scorer of passages, which was trained from it."""
    folder = "anvil/embedding/model"
    with zipfile.ZipFile(wheel) as archive:
        described = json.loads(archive.read(f"{folder}/model.json"))
        contents = {name: archive.read(f"{folder}/{name}") for name in ("model.onnx", "passages.onnx")}
    original = PackageURL("huggingface", "sentence-transformers", "all-MiniLM-L6-v2")
    source = Property(name="anvil:model:source_sha256", value=described["source_sha256"])
    apache = [LICENSES.make_from_string("Apache-2.0")]
    return [
        Component(
            name=described["name"],
            version=described["digest"][:12],
            type=ComponentType.MACHINE_LEARNING_MODEL,
            description="The embedding model that the package carries.",
            bom_ref=described["name"],
            hashes=[digest(contents["model.onnx"])],
            licenses=apache,
            pedigree=Pedigree(
                ancestors=[
                    Component(
                        name=original.name, type=ComponentType.MACHINE_LEARNING_MODEL, purl=original, licenses=apache
                    )
                ],
                notes="Trained by scripts/train_models.py; see MODEL_CARD.md next to it.",
            ),
            properties=[
                Property(name="anvil:model:file", value=f"{folder}/model.onnx"),
                Property(name="anvil:model:digest", value=described["digest"]),
                source,
            ],
        ),
        Component(
            name=f"{described['name']}-passages",
            version=hashlib.sha256(contents["passages.onnx"]).hexdigest()[:12],
            type=ComponentType.MACHINE_LEARNING_MODEL,
            description="The scorer of passages that the package carries.",
            bom_ref=f"{described['name']}-passages",
            hashes=[digest(contents["passages.onnx"])],
            licenses=apache,
            pedigree=Pedigree(notes="Trained by scripts/train_models.py; see MODEL_CARD.md next to it."),
            properties=[Property(name="anvil:model:file", value=f"{folder}/passages.onnx"), source],
        ),
    ]


def digest(content: bytes) -> HashType:
    """SHA-256 of bytes."""
    return HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(content).hexdigest())


def text(found: Bom) -> str:
    """The bill as JSON."""
    return JsonV1Dot6(found).output_as_string(indent=2) + "\n"


def installed_in(environment: Path) -> Iterable[Distribution]:
    """The packages of a virtual environment."""
    folders = [*environment.glob("lib/python*/site-packages"), *environment.glob("Lib/site-packages")]
    return distributions(path=[str(folder) for folder in folders])


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("Usage: python scripts/sbom.py WHEEL ENVIRONMENT FILE")
    made = bill(Path(sys.argv[1]), installed_in(Path(sys.argv[2])))
    Path(sys.argv[3]).write_text(text(made), encoding="utf-8", newline="\n")
