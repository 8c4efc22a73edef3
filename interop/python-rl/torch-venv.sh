#!/usr/bin/env bash
# Makes the virtual environment of the tests behind AENV_TORCH=1, in the user's cache folder, where all clones share it.
set -euo pipefail
folder=${XDG_CACHE_HOME:-$HOME/.cache}/aenv/torch-venv
[ -x "$folder/bin/pip" ] || "${PYTHON:-python3}" -m venv "$folder"
here=$(dirname "${BASH_SOURCE[0]}")
"$folder/bin/pip" install --disable-pip-version-check -r "$here/requirements-torch.txt"
"$folder/bin/pip" install --disable-pip-version-check --no-deps -r "$here/torch-without-dependencies.txt"
echo "$folder"
