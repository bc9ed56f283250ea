#!/usr/bin/env bash
# The sdist with the lowest version of each dependency that pyproject.toml claims: installed, tried, and the tests
# of the modules that call them, run from it. A lower bound that is wrong fails here.
#
#   scripts/try_lowest.sh PYTHON SDIST       PYTHON: the oldest that is supported; uv must be on the path
set -euo pipefail

python=$1
sdist=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tests=(
  tests/fetch/test_attestation_sigstore.py
  tests/embedding/test_{local,openai}.py
  tests/library/test_web_download.py
  tests/git/test_{repository,repository_merge}.py
  tests/documents/test_file_watcher.py
  tests/index_file/test_{publish,publish_lock,verify}.py
  tests/text/test_{front_matter,markdown_sections}.py
  tests/sites/test_page_content.py
  tests/e2e/mcp/test_tools.py
  tests/server/test_stdio.py
  tests/library/test_conversion_process.py::test_{formats,pages_of_a_pdf_and_slides_keep_their_numbers}
  tests/e2e/mkdocs/test_mkdocs.py::test_{the_site_carries_its_index_and_a_manifest,what_plugins_made_of_a_page_is_indexed}
)

tar -xzf "$sdist" -C "$work"
cd "$work"/*/
extras=(--extra mkdocs --extra openai --extra library --extra attest)
uv pip compile --quiet --python "$python" --resolution lowest-direct "${extras[@]}" pyproject.toml -o "$work/lowest.txt"
uv venv --quiet --python "$python" "$work/environment"
uv pip install --quiet --python "$work/environment" --constraint "$work/lowest.txt" \
  "$sdist[mkdocs,openai,library,attest]" markdown-it-py openpyxl hypothesis pytest pytest-xdist python-docx python-pptx \
  reportlab trustme
"$(pwd)/scripts/smoke.sh" "$work/environment" index.md quickstart.md guides/keep-fresh.md guides/ci.md
rm -rf anvil mkdocs_anvil # what is installed is what is tried
"$work/environment/bin/python" -m pytest -n auto -p no:cacheprovider "${tests[@]}" \
  --deselect tests/text/test_markdown_sections.py::test_ten_thousand_lines_and_a_million_in_a_fence # of speed, which is no bound's
