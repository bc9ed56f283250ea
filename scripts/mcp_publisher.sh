#!/usr/bin/env bash
# The MCP registry's own program, at one version; Go compares what it fetches with its public checksum database.
#
#   scripts/mcp_publisher.sh validate|login|publish ...
set -euo pipefail

exec go run github.com/modelcontextprotocol/registry/cmd/publisher@v1.8.0 "$@"
