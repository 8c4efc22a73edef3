#!/usr/bin/env bash
# Makes the virtual environment of the tests behind AENV_TORCH=1, in the user's cache folder, where all clones share it.
set -euo pipefail
folder=${XDG_CACHE_HOME:-$HOME/.cache}/aenv/torch-venv
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
uv() { "$here/../uv.sh" pip install --quiet --python "$folder/bin/python" "$@"; }
[ -x "$folder/bin/python" ] || "$here/../uv.sh" venv --quiet --python "${PYTHON:-python3}" "$folder"
uv -r "$here/requirements-torch.txt"
uv --no-deps -r "$here/torch-without-dependencies.txt"
echo "$folder"
