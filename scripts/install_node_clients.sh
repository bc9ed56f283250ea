#!/usr/bin/env bash
# Install what tests/e2e drives the server with: the official conformance suite (and the Node that they need), the
# Inspector, mcporter, and the validator of bundles. They go into a cache folder, once; a second run only looks.
#
#   scripts/install_node_clients.sh            into ~/.cache/anvil/node-clients
#   ANVIL_NODE_CLIENTS=FOLDER scripts/...      into another folder
#
# Exits with 0 and installs nothing where there is no npm: those tests are skipped then, and say so.
set -euo pipefail

folder=${ANVIL_NODE_CLIENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/anvil/node-clients}
packages=(
  node@24.21.0 @modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/inspector@2.12.0 mcporter@0.12.3
  @anthropic-ai/mcpb@2.1.2
)

if ! command -v npm >/dev/null; then
  echo "There is no npm here: the Node clients are not installed."
  exit 0
fi
if [[ -f $folder/.complete && $(cat "$folder/.complete") == "${packages[*]}" ]]; then
  echo "The Node clients are in $folder."
  exit 0
fi
mkdir -p "$folder"
cd "$folder"
[[ -f package.json ]] || echo '{"private": true}' >package.json
npm install --save-exact --no-audit --no-fund --loglevel=error "${packages[@]}"
echo "${packages[*]}" >.complete
echo "The Node clients are in $folder."
