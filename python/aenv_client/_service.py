"""What the modules for frameworks share: a row of a dataset becomes a rollout, and its result a reward with tokens, or `Unscored`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

from ._async.client import AsyncClient
from .errors import NotFound, PlatformError, Unscored, raise_unscored, reward_of
from .types import RolloutResult, Sequence

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RolloutService:
    """
    Where episodes are played, and how. `environment` and `reward_args`, the arguments of the reward, are for rows that have none. `url` and `api_key` are those of `AsyncClient`.
    `retries` is 1 if the service records the tokens. It is 0 if the trainer does: the trainer's proxy would keep the turns of a failed
    attempt beside those of the next one, and train on them. It holds no connection, so it can be pickled and used in any event loop.
    """

    environment: str | None = None
    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    limits: Mapping[str, Any] = field(default_factory=dict)
    retries: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    reward_args: Mapping[str, Any] = field(default_factory=dict)

    async def play(self, row: Mapping[str, Any], model: Mapping[str, Any], **fields: Any) -> RolloutResult:
        """
        Plays the task of a row against a model. When the caller is cancelled, so is the rollout. A failure of the platform raises
        `Unscored`; a mistake in the request raises `PlatformError`.
        """
        rollout = self.rollout(row, model, **fields)
        async with AsyncClient(self.url, api_key=self.api_key) as client:
            try:
                return await client.rollouts.play(rollout)
            except asyncio.CancelledError:
                with contextlib.suppress(PlatformError):
                    await client.rollouts.cancel(rollout["id"])
                raise
            except PlatformError as error:
                raise_unscored(error, "start")

    async def cancel(self, ids: Iterable[str]) -> None:
        """Cancels each. One that the server does not know, or cannot cancel, does not keep the others running."""
        async with AsyncClient(self.url, api_key=self.api_key) as client:
            for id in ids:
                try:
                    await client.rollouts.cancel(id)
                except NotFound:
                    continue
                except PlatformError as error:
                    logger.warning("rollout %s was not cancelled: %s", id, error)

    def rollout(self, row: Mapping[str, Any], model: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
        """The rollout of a row with `task`, and `environment` if this service names none: columns of the row, or of its `extra_info`."""
        columns = ("environment", "task", "seed", "reward_args")
        found = {**(row.get("extra_info") or {}), **{key: row[key] for key in columns if row.get(key) is not None}}
        environment = found.get("environment") or self.environment
        if environment is None:
            raise ValueError(f"the row names no environment, and neither does the configuration; its columns are {', '.join(row)}")
        task = found.get("task")
        reward_args = found.get("reward_args")
        reward_args = dict(self.reward_args) if reward_args is None else _given(reward_args)
        return {
            "id": uuid.uuid4().hex,
            "environment": environment,
            **({} if task is None else {"task": {"id": task} if isinstance(task, str) else _chosen(task)}),
            "seed": int(found.get("seed") or 0),
            "model": dict(model),
            "limits": {key: value for key, value in self.limits.items() if value is not None},
            "retries": _default_retries(model) if self.retries is None else self.retries,
            "variables": dict(self.variables),
            **({"reward_args": reward_args} if reward_args else {}),
            **fields,
        }


def sequences_of(result: RolloutResult) -> tuple[float, list[Sequence]]:
    """The reward and the token sequences of a scored result. Raises `Unscored` if there is nothing to train on."""
    reward = reward_of(result["outcome"])
    sequences = result.get("sequences") or []
    if result.get("capture") != "tokens" or not sequences:
        raise Unscored("the model returned no token ids", cause="model", retryable=False)
    return reward, sequences


def only_sequence(result: RolloutResult) -> tuple[float, Sequence]:
    """The sequence of an episode, for frameworks that take one: an episode that drifted into several cannot be trained on."""
    reward, sequences = sequences_of(result)
    if len(sequences) > 1:
        message = f"a later prompt does not begin with the tokens before it, so the episode has {len(sequences)} sequences"
        raise Unscored(message, cause="model", retryable=False)
    return reward, sequences[0]


def outcome_of(error: Unscored) -> dict[str, Any]:
    """The outcome that the error stands for, for frameworks that keep outcomes and not exceptions."""
    return {"kind": "unscored", "cause": error.cause, "stage": error.stage, "message": error.message, "retryable": error.retryable}


def sampling_of(params: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The settings that the model's endpoint understands. `max_new_tokens`, the name of SGLang's own API, is `max_tokens` there."""
    given = {"max_tokens": params.get("max_new_tokens"), **params}
    return {name: given[name] for name in (*names, "max_tokens") if given.get(name) is not None}


def _default_retries(model: Mapping[str, Any]) -> int:
    return 1 if model.get("tokens") == "service" else 0


def _chosen(task: Mapping[str, Any]) -> dict[str, Any]:
    given = _given(task)
    return {key: given[key] for key in (("id",) if "id" in given else ("inline",) if "inline" in given else ("split", "index")) if key in given}


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of Parquet files have all keys of all rows, with None where a row has no value."""
    return {key: value for key, value in values.items() if value is not None}
