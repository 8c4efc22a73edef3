"""
OpenEnv: sessions for trainers that read OpenEnv's training traces, such as TRL's asynchronous trainer. Tested with openenv 0.10.0.

    factory = AEnvSessionFactory("shop@1.0.0", url="http://aenv:8080", model={"base_url": "http://vllm:8000/v1", "name": "m"})
    worker = HarnessRolloutWorker(harness_session_factory=factory, ...)

The service plays the episode when the session is waited for. An unscored episode has `env_reward` None and an empty trace.
"""

from __future__ import annotations

import asyncio
from typing import Any, Mapping

from openenv.core.harness import ResourceSession, ResourceSessionFactory, ToolResult, VerifyResult
from openenv.core.harness.training import TrainingTrace, TrainingTurn

from ._service import RolloutService
from .errors import Unscored, reward_of
from .types import RolloutResult


class AEnvSession(ResourceSession):  # type: ignore[misc]
    """One episode, which the service plays by itself."""

    def __init__(self, service: RolloutService, task: Any, seed: int | None, model: Mapping[str, Any]) -> None:
        self._service = service
        self._row = {"task": task, "seed": seed}
        self._model = {**model, "tokens": "service"}
        self._result: RolloutResult | None = None
        self._unscored: Unscored | None = None

    def wait_for_completion(self, timeout_s: float | None = None) -> int:
        """Plays the episode; 0 if it was scored."""
        try:
            self._result = asyncio.run(asyncio.wait_for(self._service.play(self._row, self._model), timeout_s))
            reward_of(self._result["outcome"])
        except Unscored as error:
            self._unscored = error
        except asyncio.TimeoutError:
            self._unscored = Unscored(f"the episode took longer than {timeout_s} s", cause="timeout", retryable=True)
        return 0 if self._unscored is None else 1

    def fetch_training_trace(self) -> TrainingTrace:
        if self._result is None or self._unscored is not None or self._result["capture"] != "tokens":
            return TrainingTrace(turns=[])
        return TrainingTrace(turns=[_turn(turn) for turn in self._result["turns"]])

    def verify(self, transcript: list[dict[str, Any]], final_state: Any | None = None) -> VerifyResult:
        if self._result is None or self._unscored is not None:
            why = str(self._unscored or "the episode was not played")
            return VerifyResult(env_reward=None, done=False, metrics={"unscored": why})
        components = self._result["outcome"].get("components", {})
        return VerifyResult(env_reward=reward_of(self._result["outcome"]), done=True, metrics=dict(components))

    def initial_messages(self) -> list[dict[str, Any]]:
        return [] if self._result is None else [one for one in self._result["messages"] if one["role"] in ("system", "user")][:2]

    def list_tools(self) -> list[Any]:
        """None: the service calls the tools."""
        return []

    def call_tool(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult(error="the service plays this episode and calls its tools")

    def close(self) -> None:
        """Nothing is held: the service has released the instance."""


class AEnvSessionFactory(ResourceSessionFactory[AEnvSession]):  # type: ignore[misc]
    def __init__(
        self,
        environment: str,
        *,
        model: Mapping[str, Any],
        url: str | None = None,
        api_key: str | None = None,
        limits: Mapping[str, Any] | None = None,
        retries: int = 1,
        reward_args: Mapping[str, Any] | None = None,
    ) -> None:
        self._service = RolloutService(environment, url, api_key, dict(limits or {}), retries, reward_args=dict(reward_args or {}))
        self._model = dict(model)

    def create(self, task: Any, seed: int | None = None, episode_id: str | None = None) -> AEnvSession:
        """`task` is the id of a task, `{"id": ...}` or `{"split": ..., "index": ...}`."""
        return AEnvSession(self._service, task, seed, self._model)


def _turn(turn: dict[str, Any]) -> TrainingTurn:
    prompt, completion = turn["prompt_token_ids"], turn["completion_token_ids"]
    return TrainingTurn(
        node_id=turn["node_id"],
        prompt_token_ids=prompt,
        completion_token_ids=completion,
        per_token_logps=[float(value) for value in turn["logprobs"]],
        loss_mask=[0] * len(prompt) + [1] * len(completion),
        response={"choices": [{"message": turn["message"], "finish_reason": turn["finish_reason"]}]},
        metadata={"weight_versions": turn["weight_versions"]},
    )
