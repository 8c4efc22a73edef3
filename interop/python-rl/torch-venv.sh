#!/usr/bin/env bash
# Makes the virtual environment of the tests behind AENV_TORCH=1, in the user's cache folder, where all clones share it.
set -euo pipefail
folder=${XDG_CACHE_HOME:-$HOME/.cache}/aenv/torch-venv
[ -x "$folder/bin/pip" ] || "${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/pip" install --disable-pip-version-check -r "$(dirname "${BASH_SOURCE[0]}")/requirements-torch.txt"
echo "$folder"
