#!/usr/bin/env bash
# Installs what Halo is tested with from npm, MCP servers and Linear's own client, into the folder .node of the repository.
# Without Node or a registry it says so; the tests that need them are then left out, and pytest says so at its start.
set -euo pipefail

packages=(
  @linear/sdk@98.0.0
  @modelcontextprotocol/server-everything@2026.8.31
  @modelcontextprotocol/server-filesystem@2026.8.31
)
folder="$(dirname "$0")/../.node"

[ "$(cat "$folder/installed" 2> /dev/null)" != "${packages[*]}" ] || exit 0
if ! command -v npm > /dev/null; then
  echo "npm is not installed, so the tests with packages from npm are left out"
  exit 0
fi
echo "Installing ${packages[*]} …"
mkdir -p "$folder"
if npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts --prefix "$folder" "${packages[@]}"; then
  echo "${packages[*]}" > "$folder/installed"
else
  echo "npm could not install them, so the tests with packages from npm are left out"
fi
