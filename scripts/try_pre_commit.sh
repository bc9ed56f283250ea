#!/usr/bin/env bash
# The hooks as a stranger gets them: pre-commit clones this repository, installs the package into an environment of its
# own, and runs both hooks in a repository with pages. Needs git, pre-commit and a package registry; takes a minute or two.
#
#   scripts/try_pre_commit.sh [PRE-COMMIT]
set -euo pipefail

checkout=$(cd "$(dirname "$0")/.." && pwd)
pre_commit=${1:-pre-commit}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PRE_COMMIT_HOME=$work/pre-commit GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
for who in AUTHOR COMMITTER; do
  export "GIT_${who}_NAME=A Writer" "GIT_${who}_EMAIL=writer@example.com"
done

# what would be published: the files as they lie here, in a repository of their own
mkdir "$work/anvil" "$work/pages"
git -C "$checkout" ls-files --cached --others --exclude-standard -z | (cd "$checkout" && xargs -0 cp --parents -t "$work/anvil")
git -C "$work/anvil" init -q
git -C "$work/anvil" add -A
git -C "$work/anvil" commit -q -m "what is tried"

cd "$work/pages"
git init -q
mkdir docs
cp "$checkout"/docs/*.md docs
cat >.pre-commit-config.yaml <<YAML
repos:
  - repo: $work/anvil
    rev: $(git -C "$work/anvil" rev-parse HEAD)
    hooks:
      - id: anvil-build
        args: [--index, docs.anvil.db]
      - id: anvil-check
        args: [--index, docs.anvil.db]
YAML
"$pre_commit" validate-manifest "$checkout/.pre-commit-hooks.yaml"
"$pre_commit" install
git add -A
echo "A draft." >docs/draft.md
printf '\nA line that is not staged.\n' >>docs/index.md

commit() { # message; what is printed goes to a file, too
  git commit -m "$1" 2>&1 | tee "$work/said.txt"
  return "${PIPESTATUS[0]}"
}

if commit "without an index"; then
  echo "A commit without an index was let through."
  exit 1
fi
grep -q "git add docs.anvil.db" "$work/said.txt"
git add docs.anvil.db
commit "pages and their index"
"$pre_commit" run --all-files
git rm -q docs/quickstart.md
if commit "one page less"; then
  echo "A commit with a stale index was let through."
  exit 1
fi
git add docs.anvil.db
commit "one page less, and the index"
[[ $(git status --porcelain) == $' M docs/index.md\n?? docs/draft.md' ]] || { git status --short; exit 1; }
anvil=$(echo "$PRE_COMMIT_HOME"/repo*/py_env*/bin/anvil)
"$anvil" check --ref HEAD --tracked --index docs.anvil.db
echo "The hooks work as published."
