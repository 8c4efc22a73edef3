"""Runs tasks with Harbor itself: its oracle and its agent that does nothing, in containers of Docker. Arguments: dataset, job folder, tasks."""

import asyncio
import sys
from pathlib import Path

from harbor.job import Job
from harbor.models.job.config import DatasetConfig, JobConfig
from harbor.models.trial.config import AgentConfig

dataset, job, *tasks = sys.argv[1:]
config = JobConfig(
    job_name=Path(job).name,
    jobs_dir=Path(job).parent,
    n_concurrent_trials=12,
    quiet=True,
    agents=[AgentConfig(name="oracle"), AgentConfig(name="nop")],
    datasets=[DatasetConfig(path=Path(dataset), task_names=tasks)],
)


async def main() -> None:
    await (await Job.create(config)).run()


asyncio.run(main())
