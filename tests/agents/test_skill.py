"""The list of a site's skills has the published form, and other skills in it stay."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import anvil
from anvil.agents import skill
from anvil.errors import ConfigError
from tests.conftest import write

MADE = skill.skill("lighthouse-docs", "https://example.org/", "The pointer.")


def test_the_list_names_the_skill_with_its_digest() -> None:
    files = skill.skill_files(MADE)
    assert list(files) == [
        ".well-known/agent-skills/lighthouse-docs/SKILL.md",
        ".well-known/agent-skills/index.json",
    ]
    text, index = files.values()
    assert json.loads(index) == {
        "$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json",
        "skills": [
            {
                "name": "lighthouse-docs",
                "type": "skill-md",
                "description": MADE.description,
                "url": "lighthouse-docs/SKILL.md",
                "digest": f"sha256:{hashlib.sha256(text).hexdigest()}",
            }
        ],
    }
    assert len(MADE.description) <= 1024


def test_other_skills_stay_and_the_same_name_is_replaced() -> None:
    other = {"name": "a", "type": "archive", "url": "a.zip", "later": 1}
    old = {"name": MADE.name, "digest": "sha256:old"}
    before = json.dumps({"$schema": skill.SCHEMA, "skills": [old, other]})
    after = skill.skill_files(MADE, before)[skill.INDEX]
    listed = json.loads(after)["skills"]
    assert listed[0] == other and [each["name"] for each in listed] == ["a", MADE.name]
    assert skill.skill_files(MADE, after.decode())[skill.INDEX] == after


NO_SKILLS: list[object] = [None, {}, [1], [{"name": 1}]]


@pytest.mark.parametrize(
    "before",
    ["", "{", "[]", "{}", '{"$schema": "1", "skills": []}', '{"skills": []}', "[" * 100_000]
    + [json.dumps({"$schema": skill.SCHEMA, "skills": skills}) for skills in NO_SKILLS],
)
def test_a_list_in_another_form_is_refused(before: str) -> None:
    with pytest.raises(ConfigError, match=r"index\.json, which is not in the form"):
        skill.skill_files(MADE, before)


def test_a_list_of_more_than_a_megabyte_is_refused(tmp_path: Path, docs: Path) -> None:
    with anvil.open(docs, tmp_path / "i.db", "none") as opened:
        opened.index()
        write(tmp_path, {f"site/{skill.INDEX}": " " * 1_000_001})
        with pytest.raises(ConfigError, match=r"index\.json, which is not in the form"):
            opened.publish_skill(tmp_path / "site")
