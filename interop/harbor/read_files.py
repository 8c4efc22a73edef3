"""Reads tasks and results with Harbor's own models, and prints what they saw."""

import json
import sys
from pathlib import Path

from harbor.models.dataset.manifest import DatasetManifest
from harbor.models.job.lock import JobLock
from harbor.models.job.result import JobResult
from harbor.models.task.config import TaskConfig
from harbor.models.task.task import Task
from harbor.models.trajectories import Trajectory
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.result import TrialResult
from harbor.publisher.packager import Packager

examples, job = Path(sys.argv[1]), Path(sys.argv[2])


def task(folder: Path) -> dict:
    config = TaskConfig.model_validate_toml((folder / "task.toml").read_text())
    loaded = Task(folder)
    return {
        "config": config.model_dump(mode="json"),
        "name": loaded.name,
        "instruction": loaded.instruction,
        "checksum": loaded.checksum,
        "digest": Packager.compute_content_hash(folder)[0],
    }


def trial(folder: Path) -> dict:
    TrialConfig.model_validate_json((folder / "config.json").read_text())
    result = TrialResult.model_validate_json((folder / "result.json").read_text())
    (folder / "rewritten.json").write_text(result.model_dump_json(indent=4))
    return {"name": result.trial_name, "rewards": result.verifier_result and result.verifier_result.rewards}


JobResult.model_validate_json((job / "result.json").read_text())
Trajectory.model_validate_json((job / "trajectory.json").read_text())
manifest = DatasetManifest.from_toml((examples / "dataset.toml").read_text())
print(
    json.dumps(
        {
            "tasks": {folder.name: task(folder) for folder in sorted(examples.iterdir()) if (folder / "task.toml").exists()},
            "trials": [trial(folder) for folder in sorted(job.iterdir()) if folder.is_dir()],
            "lock": JobLock.model_validate_json((job / "lock.json").read_text()).model_dump(mode="json"),
            "dataset": manifest.compute_content_hash(),
        }
    )
)
