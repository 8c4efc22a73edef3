#!/usr/bin/env bash
# venv.sh [--check]
# Makes the virtual environment of the tests with Harbor, which needs Python 3.12 or newer. Only with what its models and its jobs need, a
# quarter of a gigabyte. With --check, it only says whether there is such a Python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
for python in python3 python3.14 python3.13 python3.12 "$HOME"/.pyenv/versions/3.1[2-9]*/bin/python; do
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2> /dev/null; then
    [ "${1-}" = --check ] && exit
    [ -x .venv/bin/python ] || ../uv.sh venv --quiet --python "$(command -v "$python")" .venv
    uv() { ../uv.sh pip install --quiet --python .venv/bin/python "$@"; }
    uv -r requirements.txt
    uv --no-deps harbor==0.25.0
    exit
  fi
done
echo "no Python 3.12 or newer here" >&2
exit 1
