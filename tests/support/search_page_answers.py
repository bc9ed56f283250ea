"""The answers of the scripts of a search page, and those of ``anvil search --mode keyword`` in the same form."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.results import Hit

NODE = shutil.which("node")
ANSWERS = """
async (search, questions) => {
  const answers = [];
  for (const question of questions) {
    const found = await search.rank(question);
    const rows = [];
    for (const result of search.shown(found.results, 5)) {
      const {heading, anchor} = await search.section(result, found);
      rows.push([result.page.path, heading, anchor, result.score, Math.round(result.confidence * 100) / 100]);
    }
    answers.push(rows);
  }
  return answers;
}
"""
"""A function in JavaScript: a ``Search`` and questions -> for each question the rows of its results."""
_IN_NODE = f"""
import {{readFileSync}} from 'node:fs';
import {{Search}} from './ranking.js';
const bytes = readFileSync(process.argv[2]), data = JSON.parse(readFileSync('search.json', 'utf-8'));
const ask = async (url, {{headers}}) => {{
  const [, first, last] = headers?.Range.match(/(\\d+)-(\\d+)/) ?? [];
  const part = {{status: 206, headers: {{'Content-Range': `bytes ${{first}}-${{last}}/${{bytes.length}}`}}}};
  return first ? new Response(bytes.subarray(+first, +last + 1), part) : new Response(bytes);
}};
const search = new Search(data, 'https://example.org/anvil/search/search.json', ask);
const answers = {ANSWERS.strip()};
console.log(JSON.stringify(await answers(search, JSON.parse(process.argv[3]))));
"""


def in_node(page: Path, index: Path, questions: Sequence[str]) -> list[Any]:
    """The answers of the scripts next to ``page``."""
    folder = page.parent
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "answers.js").write_text(_IN_NODE, encoding="utf-8")
    command = [str(NODE), "answers.js", str(index), json.dumps(questions)]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def row(hit: Hit) -> list[Any]:
    return [hit.metadata.file_path, hit.metadata.heading_path, hit.anchor, hit.score, hit.confidence]


def by_words(opened: anvil.Anvil, questions: Sequence[str]) -> list[Any]:
    """The answers of a search by words."""
    return [list(map(row, opened.search(question, mode="keyword").results)) for question in questions]


def assert_same(questions: Sequence[str], answers: Sequence[Any], expected: Sequence[Any]) -> None:
    """Check that both are the same pages and sections in the same order, with the same scores."""
    for question, answer, wanted in zip(questions, answers, expected, strict=True):
        assert [own[:3] for own in answer] == [other[:3] for other in wanted], question
        for own, other in zip(answer, wanted, strict=True):
            assert own[3:] == pytest.approx(other[3:], abs=0.01), question
