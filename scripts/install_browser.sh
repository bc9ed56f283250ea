#!/usr/bin/env bash
# Install the browser that tests/e2e opens built sites with, and its driver, from Debian's packages. A Chrome with
# its driver does as well.
#
#   scripts/install_browser.sh
#
# A second run only looks. Exits with 1 where it cannot be had; those tests are skipped then, and say so.
set -euo pipefail

there() {
  command -v chromedriver >/dev/null || return
  [[ -x /usr/lib/chromium/chromium-headless-shell ]] && return # half the processor time of Chromium with its windows
  { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null
}

if ! there; then
  command -v apt-get >/dev/null || { echo "There is no apt-get here: install Chromium and its driver yourself."; exit 1; }
  as_root=()
  ((EUID == 0)) || as_root=(sudo --non-interactive)
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq >/dev/null
  "${as_root[@]}" apt-get install -qq --yes --no-install-recommends chromium-headless-shell chromium-driver >/dev/null
fi
there || { echo "Chromium was installed and is not found."; exit 1; }
chromedriver --version
