#!/usr/bin/env bash
# Makes the virtual environment of the tests with RL frameworks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=interop/python-rl
pip() { "$folder/.venv/bin/pip" install --quiet --disable-pip-version-check "$@"; }
[ -x "$folder/.venv/bin/pip" ] || python3 -m venv "$folder/.venv"
pip -r "$folder/requirements.txt"
pip --no-deps --ignore-requires-python -r "$folder/without-dependencies.txt"
# RLlib pins this version, so the client supports it beside the newest one.
old="$folder/.venv/gymnasium-1.2.2"
[ -d "$old" ] || pip --no-deps --target "$old" gymnasium==1.2.2
