#!/bin/sh
# Ingest a repository's context; for crontabs, whose working folder and PATH are not yours.
#
#     scripts/mcp-ingest.sh [FOLDER] [OPTIONS OF anvil context ingest]
#
# FOLDER is the repository (default: the one that this script is in). ANVIL names the program, if it is not on the PATH.
set -eu
case "${1-}" in
  "" | -*) root=$(cd "$(dirname "$0")/.." && pwd) ;;
  *) root=$1; shift ;;
esac
exec "${ANVIL:-anvil}" context ingest --root "$root" --quiet "$@"
