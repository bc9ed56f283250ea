#!/usr/bin/env bash
# The sdist with the lowest version of each dependency that pyproject.toml claims: installed, tried, and the tests of
# whatever stands at a door to one of them run from it. A bound that is a lie fails here.
#
#   scripts/try_lowest.sh PYTHON SDIST       PYTHON: the oldest that is supported; uv must be on the path
set -euo pipefail

python=$1
sdist=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
doors=(
  architecture answering converting embedding_local embedding_openai fetching frontmatter git libgit2 markdown
  mkdocs_rendering store_checking store_trust watching webdocuments
)
surfaces=(cli mkdocs_previous server_stdio server_tools)

tar -xzf "$sdist" -C "$work"
cd "$work"/*/
extras=(--extra mkdocs --extra openai --extra library)
uv pip compile --quiet --python "$python" --resolution lowest-direct "${extras[@]}" pyproject.toml -o "$work/lowest.txt"
uv venv --quiet --python "$python" "$work/environment"
uv pip install --quiet --python "$work/environment" --constraint "$work/lowest.txt" \
  "$sdist[mkdocs,openai,library]" markdown-it-py openpyxl hypothesis pytest pytest-xdist python-docx python-pptx \
  reportlab trustme
"$(pwd)/scripts/smoke.sh" "$work/environment"
rm -rf anvil mkdocs_anvil # what is installed is what is tried
files=("${doors[@]/#/tests/test_}" "${surfaces[@]/#/tests/surfaces/test_}")
"$work/environment/bin/python" -m pytest -n auto -p no:cacheprovider "${files[@]/%/.py}"
