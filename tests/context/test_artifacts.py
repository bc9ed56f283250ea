"""Types and ids of artifacts, from paths alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.context.artifacts import KINDS, Kind, id_of, kind_of
from anvil.context.settings import ArtifactTypes

PATHS = {
    "specs/001-mcp-server-and-ingestion/spec.md": ("spec", "spec-001-mcp-server-and-ingestion"),
    "specs/001-mcp-server-and-ingestion/plan.md": ("plan", "plan-001-mcp-server-and-ingestion"),
    "specs/001-mcp-server-and-ingestion/tasks.md": ("tasks", "tasks-001-mcp-server-and-ingestion"),
    "specs/001-mcp/checklists/security.md": ("checklist", "checklist-001-mcp.security"),
    ".specify/templates/spec-template.md": ("template", "template-spec-template"),
    ".specify/templates/commands/plan.md": ("template", None),
    "architecture/adr/0001-use-sqlite.md": ("decision", "decision-architecture.adr.0001-use-sqlite"),
    "architecture/decisions/README.md": ("decision", "decision-architecture.decisions.README"),
    "architecture/overview.md": ("generic", "generic-architecture.overview"),
    "operations/group/Spec.MD": ("spec", None),
    "specs/001-mcp/research.md": ("generic", "generic-specs.001-mcp.research"),
    "specs/checklist.md": ("checklist", None),
    "perspectives/überblick.md": ("generic", "generic-perspectives.überblick"),
}


@pytest.mark.parametrize("path", PATHS)
def test_types_and_ids(path: str) -> None:
    kind, id_ = PATHS[path]
    assert kind_of(path, ArtifactTypes()) == kind
    found = id_of(path, kind_of(path, ArtifactTypes()))
    if id_ is None:  # readable, and told apart by a hash
        assert re.fullmatch(rf"{kind}-[\w.-]+-[0-9a-f]{{8}}", found), found
    else:
        assert found == id_


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".kiro/specs/login/requirements.md", "spec"),
        (".kiro/specs/login/design.md", "plan"),
        (".kiro/specs/login/tasks.md", "tasks"),
        (".kiro/steering/design.md", "generic"),
        ("openspec/changes/archive/2026-01-add-login/proposal.md", "spec"),
        ("openspec/changes/add-login/design.md", "plan"),
        ("openspec/specs/login/design.md", "generic"),
        ("backlog/tasks/back-1 - Log-in.md", "tasks"),
        ("backlog/docs/doc-1.md", "generic"),
        ("docs/adr/0001-use-sqlite.md", "decision"),
        ("_bmad-output/planning-artifacts/PRD.md", "spec"),
        ("_bmad-output/implementation-artifacts/1-1-log-in.md", "tasks"),
        ("docs/stories/1.1.log-in.story.md", "tasks"),
        (".planning/phases/01-login/01-02-PLAN.md", "plan"),
        (".planning/phases/01-login/01-02-SUMMARY.md", "generic"),
        ("docs/superpowers/specs/2026-01-31-login-design.md", "spec"),
        (".cursor/plans/log_in_f8dc5c34.plan.md", "plan"),
    ],
)
def test_files_of_other_tools_have_types(path: str, kind: str) -> None:
    assert kind_of(path, ArtifactTypes()) == kind


def test_types_are_configurable() -> None:
    types = ArtifactTypes(spec=("rfcs/*.md",), decision=())
    assert kind_of("rfcs/12-locks.md", types) == "spec"
    assert kind_of("specs/001/spec.md", types) == "generic"
    assert kind_of("architecture/adr/1.md", types) == "generic"


def test_what_could_be_mistaken_is_told_apart_by_the_path() -> None:
    """Paths whose readable parts are the same."""
    alike = ["specs/a/b.md", "specs/a.b.md", "specs/a b.md", "specs/a-b.md", "specs.a/b.md", "specs/a/b.markdown"]
    assert len({id_of(path, "generic") for path in alike}) == len(alike)
    specs = [
        "specs/x/spec.md",
        "specs/specs/x/spec.md",
        "x.md",
        "specs/x.md",
        "operations/x/spec.md",
        "spec.md",
        "specs/spec/spec.md",
    ]
    assert len({id_of(path, "spec") for path in specs}) == len(specs)
    boxes = ["specs/x/checklists/y.md", "x/y.md", "specs/x.y.md", "checklists/x/y.md"]
    assert len({id_of(path, "checklist") for path in boxes}) == len(boxes)


names = st.text("ab.- _é/", min_size=1, max_size=12)
folders = st.sampled_from(["specs/", ".specify/templates/", "specs/a/checklists/", "", "a/"])
ends = st.sampled_from(["/spec.md", "/plan.md", ".md", ".markdown", "/checklists/a.md"])
paths = st.builds(lambda folder, name, end: re.sub("/+", "/", folder + name + end), folders, names, ends)


@given(st.lists(paths, unique=True, max_size=30), st.sampled_from(KINDS))
def test_ids_are_unique_and_their_own(found: list[str], kind: Kind) -> None:
    ids = {path: id_of(path, kind) for path in found}
    assert len(set(ids.values())) == len(found)
    assert all("/" not in id_ and not re.search(r"\s", id_) for id_ in ids.values())
