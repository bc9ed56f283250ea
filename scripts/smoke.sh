#!/usr/bin/env bash
# What a reader of the README would type, and a few questions to the library, on an installed package.
#
#   scripts/smoke.sh ENVIRONMENT [PAGE...]    a virtual environment with the package in it; pages of docs/, else all
set -euo pipefail

environment=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
docs=$(cd "$(dirname "$0")/../docs" && pwd)
shift
if (($#)); then
  for page; do
    mkdir -p "$folder/docs/$(dirname "$page")"
    cp "$docs/$page" "$folder/docs/$page"
  done
else
  cp -R "$docs" "$folder/docs"
  rm -rf "$folder/docs/.anvil"
fi
cd "$folder" # not the checkout: Python would import its source instead of the installed package

"$environment/bin/anvil" search --docs docs "how do I keep the index fresh?" >answer.txt
head -n 3 answer.txt
grep -q "guides/keep-fresh.md" answer.txt
"$environment/bin/anvil-docs" check --docs docs # the name by which uvx and pipx start it
"$environment/bin/anvil" verify docs/.anvil/index.db
"$environment/bin/anvil" doctor --docs docs
"$environment/bin/python" -W error - <<'PYTHON'
import sys

import anvil

with anvil.open(docs="docs") as docs:
    found = docs.search("which exit code says that the index is stale?")
    assert found.results, "nothing found"
    page = docs.get_page(found.results[0].metadata.file_path)
    assert page.chunks and not docs.check()
    print("Python", sys.version.split()[0], "answers from", page.file_path)
PYTHON
