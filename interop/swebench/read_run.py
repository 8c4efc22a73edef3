"""Prints the report that the reference makes of a run, and how it grades the stored output of each instance.

Usage: read_run.py FOLDER RUN_ID. The folder has predictions.json, dataset.json and logs/run_evaluation.
"""

import contextlib
import json
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock


class Absent(MetaPathFinder, Loader):
    """Modules of packages that are not installed: the reference imports them, and its reports do not use them."""

    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] == "swebench" else ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        class Anything(ModuleType):
            __path__ = []
            __getattr__ = lambda self, name: MagicMock()

        return Anything(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.append(Absent())
folder, run_id = sys.argv[1:]
os.chdir(folder)

from swebench.harness.grading import get_eval_report  # noqa: E402
from swebench.harness.reporting import make_run_report  # noqa: E402
from swebench.harness.utils import make_test_spec  # noqa: E402

predictions = json.loads(Path("predictions.json").read_text())
dataset = json.loads(Path("dataset.json").read_text())
with contextlib.redirect_stdout(sys.stderr):
    report = make_run_report(predictions, dataset, run_id, report_dir="reference")
    graded = {}
    for row in dataset:
        prediction = predictions.get(row["instance_id"], {"model_name_or_path": "none", "instance_id": row["instance_id"]})
        logs = Path("logs/run_evaluation", run_id, prediction["model_name_or_path"].replace("/", "__"), row["instance_id"])
        if (logs / "report.json").exists():
            graded |= get_eval_report(make_test_spec(row), prediction, str(logs / "test_output.txt"), True)
print(json.dumps({"report": json.loads(report.read_text()), "graded": graded}))
