#!/usr/bin/env bash
# Installs what the tests need beside Python packages: real counterparts of what Halo talks to. Where it cannot, says
# what is missing; the tests that need it are then left out, and pytest says so at its start.
set -euo pipefail

# command → Debian package
declare -A needed=(
  [tmux]=tmux                 # a real terminal
  [initdb]=postgresql         # a database
  [chromium]=chromium         # a browser
  [nvim]=neovim               # an editor with a language client
  [node]=nodejs               # MCP servers and clients from npm
  [npm]=npm
  [bwrap]=bubblewrap          # a sandbox
  [dovecot]=dovecot-imapd     # mailboxes over IMAP
)

PATH="$PATH:/usr/sbin:$(printf '%s:' /usr/lib/postgresql/*/bin)" # where servers are
missing=()
for command in "${!needed[@]}"; do
  command -v "$command" > /dev/null || missing+=("${needed[$command]}")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if command -v apt-get > /dev/null && [ "$(id -u)" = 0 ]; then
  echo "Installing ${missing[*]} …"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" > /dev/null
else
  echo "Not installed, so their tests are left out: ${missing[*]} (Debian's names; only root can install them here)"
fi
