#!/usr/bin/env bash
# Makes the virtual environment of the tests with the reference of SWE-bench, without what it needs to run anything: that is half a gigabyte.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
[ -x .venv/bin/pip ] || python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r requirements.txt
