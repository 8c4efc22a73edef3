"""Parses generated logs with the parsers of SWE-bench, and prints the time and a digest of the results of each.

Usage: reference.py [FILE]. Without a file, it only loads the parsers.
"""

import contextlib
import hashlib
import io
import json
import os
import sys
import time
from types import ModuleType, SimpleNamespace
from unittest.mock import MagicMock

import swebench

# Without what the parsers do not need: the package "harness" loads Docker's client and others, and "utils" loads unidiff.
harness = ModuleType("swebench.harness")
harness.__path__ = [os.path.join(swebench.__path__[0], "harness")]
sys.modules[harness.__name__] = harness
sys.modules["unidiff"] = MagicMock()

import swebench.harness.log_parsers as module  # noqa: E402

if len(sys.argv) < 2:
    sys.exit()

registry = next(
    value for value in vars(module).values() if isinstance(value, dict) and "parse_log_pytest" in value
)

# Rounds of each measurement, of which the fastest counts.
ROUNDS = 5

with open(sys.argv[1], encoding="utf-8") as file:
    logs = json.load(file)

measured = []
for entry in logs:
    spec = SimpleNamespace(instance_id=entry["instanceId"], version=entry["version"])
    parse = registry[entry["parser"]]
    seconds = float("inf")
    for _ in range(ROUNDS):
        # Some parsers print warnings.
        with contextlib.redirect_stdout(io.StringIO()):
            started = time.process_time()
            results = parse(entry["log"], spec)
            seconds = min(seconds, time.process_time() - started)
    digest = hashlib.sha256("".join(f"{name}\0{status}\n" for name, status in results.items()).encode()).hexdigest()
    measured.append({"parser": entry["parser"], "seconds": seconds, "digest": digest})
print(json.dumps(measured))
