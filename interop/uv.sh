#!/usr/bin/env bash
# uv.sh ARGUMENTS...
# Runs uv, which it first installs in the cache folder. It makes virtual environments with less work than pip: the files of packages are
# links to its cache, and are not compiled before their use.
set -euo pipefail
version=0.13.8
folder=${XDG_CACHE_HOME:-$HOME/.cache}/aenv/uv-$version
if [ ! -x "$folder/bin/uv" ]; then
  mkdir -p "$(dirname "$folder")"
  part=$(mktemp -d "$folder.XXXX")
  python3 -m venv "$part"
  "$part/bin/pip" install --quiet --disable-pip-version-check "uv==$version"
  # Another process may have been faster.
  mv -T "$part" "$folder" 2>/dev/null || rm -rf "$part"
fi
# Only Pythons of the machine.
UV_PYTHON_DOWNLOADS=never exec "$folder/bin/uv" "$@"
