#!/usr/bin/env bash
# Makes the virtual environment of the tests with the reference of SWE-bench, without what it needs to run anything: that is half a gigabyte.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
[ -x .venv/bin/python ] || ../uv.sh venv --quiet --python python3 .venv
../uv.sh pip install --quiet --python .venv/bin/python --no-deps -r requirements.txt
