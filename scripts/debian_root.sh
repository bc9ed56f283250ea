#!/usr/bin/env bash
# Make a clean Debian root with debootstrap: a replacement for the base of docker/Dockerfile where no container engine
# runs. tests/e2e/docker/test_docker.py performs the Dockerfile's steps in it.
#
#   scripts/debian_root.sh          as root, or where sudo asks nothing
#
# It is kept below /var/cache/anvil-image, so a second run is quick. Exits with 1 where it cannot be made; those
# tests are skipped then, and say so.
set -euo pipefail

cd "$(dirname "$0")/.."
suite=$(sed -n 's/^ARG BASE=.*debian:\([a-z]*\)-.*/\1/p' docker/Dockerfile)
place=/var/cache/anvil-image
root=$place/$suite

[[ -d $root ]] && { echo "$root"; exit; }
if ((EUID)); then
  exec sudo --non-interactive "$0"
fi
if ! command -v debootstrap >/dev/null; then
  command -v apt-get >/dev/null || { echo "There is no apt-get here: install debootstrap yourself."; exit 1; }
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/dev/null
  apt-get install -qq --yes --no-install-recommends debootstrap >/dev/null
fi

mkdir -p "$place"
new=$(mktemp -d "$place/new.XXXXXX")
trap 'rm -rf "$new"' EXIT
debootstrap --variant=minbase "$suite" "$new" http://deb.debian.org/debian >"$place/debootstrap.log" 2>&1 ||
  { tail -n 5 "$place/debootstrap.log"; exit 1; }

# As Debian makes its slim images: no manuals, no translations, no documentation but the licences, no leftovers of apt.
cat >"$new/etc/dpkg/dpkg.cfg.d/slim" <<'CONF'
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/groff/*
path-exclude /usr/share/info/*
path-exclude /usr/share/lintian/*
path-exclude /usr/share/locale/*
path-include /usr/share/locale/locale.alias
path-exclude /usr/share/man/*
CONF
find "$new/usr/share/doc" -type f ! -name copyright -delete
find "$new/usr/share/doc" -type l -delete
find "$new/usr/share/doc" -type d -empty -delete
find "$new/usr/share/locale" -mindepth 1 -maxdepth 1 ! -name locale.alias -exec rm -rf {} +
rm -rf "$new"/usr/share/{groff,info,lintian,man}/* "$new"/var/cache/apt/* "$new"/var/lib/apt/lists/* "$new"/var/log/*
rm "$new/etc/apt/sources.list"
cat >"$new/etc/apt/sources.list.d/debian.sources" <<CONF
Types: deb
URIs: http://deb.debian.org/debian
Suites: $suite $suite-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://deb.debian.org/debian-security
Suites: $suite-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
CONF
cat >"$new/etc/apt/apt.conf.d/slim" <<'CONF'
Acquire::Languages "none";
APT::Keep-Downloaded-Packages "false";
CONF
chmod 755 "$new"
mv "$new" "$root"
trap - EXIT
echo "$root"
