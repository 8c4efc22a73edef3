"""Reads exported files with the libraries that trainers read them with, and prints what they saw."""

import json
import os
import sys
from pathlib import Path

folder = Path(sys.argv[1])
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HOME"] = str(folder / "cache")

import pandas
from aenv_client._service import RolloutService
from datasets import load_dataset
from harbor.models.trajectories import Trajectory


def rows(kind: str, name: str) -> list:
    return load_dataset(kind, data_files=str(folder / name), split="train", cache_dir=str(folder / "cache")).to_list()


def atif(name: str) -> list:
    lines = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    return [{"given": line, "read": Trajectory.model_validate(line).to_json_dict()} for line in lines]


def rollout(row: dict) -> list:
    """What the client's modules for trainers make of a row."""
    made = RolloutService().rollout(row, {})
    return [made["environment"], made["task"]]


table = pandas.read_parquet(folder / "table.parquet")
print(
    json.dumps(
        {
            "verl": rows("parquet", "verl.parquet"),
            "rollouts": {
                "verl": [rollout(row) for row in rows("parquet", "verl.parquet")],
                "areal": [rollout(row) for row in rows("json", "areal.jsonl")],
                "slime": [rollout(row["metadata"]) for row in rows("json", "slime.jsonl")],
            },
            "trl": rows("json", "trl.jsonl"),
            "sft": rows("json", "sft.jsonl"),
            "preference": rows("json", "preference.jsonl"),
            "kto": rows("json", "kto.jsonl"),
            "tokens": rows("json", "tokens.jsonl"),
            "table": {
                "types": {name: str(kind) for name, kind in table.dtypes.items()},
                "rewards": [None if pandas.isna(reward) else reward for reward in table["reward"]],
                "mean": table["reward"].mean(),
                "scored": table["scored"].tolist(),
                "messages": [len(json.loads(text)) for text in table["messages"]],
            },
            "atif": atif("atif.jsonl"),
        }
    )
)
