#!/usr/bin/env bash
# Makes the virtual environment of the tests with RL frameworks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=interop/python-rl
uv() { interop/uv.sh pip install --quiet --python "$folder/.venv/bin/python" "$@"; }
[ -x "$folder/.venv/bin/pip" ] || interop/uv.sh venv --quiet --seed --python python3 "$folder/.venv"
uv -r "$folder/requirements.txt"
# Only pip can be told to ignore the required version of Python.
"$folder/.venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --ignore-requires-python -r "$folder/without-dependencies.txt"
# RLlib pins this version, so the client supports it beside the newest one.
old="$folder/.venv/gymnasium-1.2.2"
[ -d "$old" ] || uv --no-deps --target "$old" gymnasium==1.2.2
