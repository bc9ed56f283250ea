"""The bill of materials of a release, CycloneDX 1.6: the package, what it needs to run, and the model inside.

    python scripts/sbom.py ENVIRONMENT FILE      ENVIRONMENT: a virtual environment with the wheel installed

What it needs is what is installed there, followed from requirement to requirement, without extras; so it is true for
the Python and the system of that environment. The same environment gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import uuid
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


def bill(found_there: Iterable[Distribution]) -> Bom:
    """The bill of the package among what is installed. KeyError when it, or something it needs, is not there."""
    installed = {canonicalize_name(each.metadata["Name"]): each for each in found_there}
    needs = closure(NAME, installed)
    parts = {name: component(installed[name]) for name in needs}
    root, model = parts.pop(NAME), bundled(installed[NAME])
    root.type = ComponentType.APPLICATION
    root.external_references.update(
        ExternalReference(type=kind, url=XsUri(URLS[name])) for name, kind in REFERENCES.items()
    )
    moment = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH") or EPOCH), timezone.utc)
    found = Bom(components=[*parts.values(), model], metadata=BomMetaData(component=root, timestamp=moment))
    found.register_dependency(root, [*(parts[name] for name in needs[NAME]), model])
    for name, part in parts.items():
        found.register_dependency(part, [parts[each] for each in needs[name]])
    said = "\n".join(sorted(str(each.purl) for each in [root, *parts.values(), model]))
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
    metadata = distribution.metadata
    name = canonicalize_name(metadata["Name"])
    purl = PackageURL("pypi", name=name, version=distribution.version)
    said = metadata.get("License-Expression") or metadata.get("License") or ""
    if not said or len(said) > 100:  # nothing, or a licence's whole text: what it is classified as
        classified = metadata.get_all("Classifier") or ()
        said = " and ".join(sorted(each.split(" :: ")[-1] for each in classified if each.startswith("License ::")))
    licenses = [LICENSES.make_from_string(said)] if said else []
    return Component(
        name=name, version=distribution.version, description=metadata.get("Summary"), purl=purl,
        bom_ref=str(purl), licenses=licenses,
    )  # fmt: skip


def bundled(package: Distribution) -> Component:
    """The embedding model that lies in the package."""
    folder = Path(str(package.locate_file("anvil/embedding/model")))
    described = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    content = hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()
    purl = PackageURL("huggingface", "sentence-transformers", described["name"])
    return Component(
        name=described["name"], version=described["digest"][:12], type=ComponentType.MACHINE_LEARNING_MODEL,
        description="The embedding model that the package carries.", purl=purl,
        bom_ref=str(purl), hashes=[HashType(alg=HashAlgorithm.SHA_256, content=content)],
        licenses=[LICENSES.make_from_string("Apache-2.0")],
        pedigree=Pedigree(notes="Converted to 8 bits by scripts/convert_model.py; see MODEL_CARD.md beside it."),
        properties=[
            Property(name="anvil:model:file", value="anvil/embedding/model/model.onnx"),
            Property(name="anvil:model:digest", value=described["digest"]),
            Property(name="anvil:model:source_sha256", value=described["source_sha256"]),
        ],
    )  # fmt: skip


def text(found: Bom) -> str:
    """The bill as JSON."""
    return JsonV1Dot6(found).output_as_string(indent=2) + "\n"


def installed_in(environment: Path) -> Iterable[Distribution]:
    """The packages of a virtual environment."""
    folders = [*environment.glob("lib/python*/site-packages"), *environment.glob("Lib/site-packages")]
    return distributions(path=[str(folder) for folder in folders])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("Usage: python scripts/sbom.py ENVIRONMENT FILE")
    Path(sys.argv[2]).write_text(text(bill(installed_in(Path(sys.argv[1])))), encoding="utf-8", newline="\n")
