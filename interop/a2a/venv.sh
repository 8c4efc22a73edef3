#!/usr/bin/env bash
# Makes the virtual environments of the tests with the A2A clients of Python: the newest line, and the last one that speaks version 0.3 only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for folder in a2a a2a-old; do
  [ -x "$folder/.venv/bin/python" ] || ./uv.sh venv --quiet --python python3 "$folder/.venv"
  ./uv.sh pip install --quiet --python "$folder/.venv/bin/python" -r "$folder/requirements.txt"
done
