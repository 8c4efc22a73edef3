"""
TRL: a `rollout_func` that plays whole episodes on AEnv against TRL's vLLM server. Tested with TRL 1.16.0.

    play = AEnvRollout("shop@1.0.0", url="http://aenv:8080", model_url="http://vllm:8000/v1", model_name="Qwen/Qwen3-4B")
    trainer = GRPOTrainer(model, reward_funcs=aenv_reward, rollout_func=play, train_dataset=dataset, args=args)

The dataset has the ids of tasks in the column `prompt`. An unscored episode has the reward None, which TRL leaves out of its group.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, Mapping

from ._service import RolloutService, only_sequence, sampling_of
from .errors import Unscored

logger = logging.getLogger(__name__)


class AEnvRollout:
    def __init__(
        self,
        environment: str,
        *,
        model_url: str,
        model_name: str = "default",
        url: str | None = None,
        api_key: str | None = None,
        limits: Mapping[str, Any] | None = None,
        retries: int = 1,
        reward_args: Mapping[str, Any] | None = None,
    ) -> None:
        self._service = RolloutService(environment, url, api_key, dict(limits or {}), retries, reward_args=dict(reward_args or {}))
        self._model = {"base_url": model_url, "name": model_name, "tokens": "service"}

    def __call__(self, prompts: list[Any], trainer: Any) -> dict[str, list[Any]]:
        """`prompts` has each prompt `num_generations` times; one row is returned for each, in the same order."""
        return asyncio.run(self._play_all(prompts, trainer))

    async def _play_all(self, prompts: list[Any], trainer: Any) -> dict[str, list[Any]]:
        rows = await asyncio.gather(*(self._play(prompt, trainer) for prompt in prompts))
        names = ("prompt_ids", "completion_ids", "logprobs", "env_mask", "env_reward")
        return {name: [row[name] for row in rows] for name in names}

    async def _play(self, prompt: Any, trainer: Any) -> dict[str, Any]:
        # What the model writes beyond this is cut below, so that it need not be sampled.
        longest = trainer.args.max_completion_length
        model = {**self._model, "sampling": sampling_of({"temperature": trainer.args.temperature, "max_tokens": longest}, ("temperature",))}
        try:
            reward, sequence = only_sequence(await self._service.play({"task": task_of(prompt)}, model))
        except Unscored as error:
            logger.warning("left out: %s", error)
            tokens = trainer.processing_class
            pad = tokens.pad_token_id if tokens.pad_token_id is not None else tokens.eos_token_id
            return {"prompt_ids": [pad], "completion_ids": [tokens.eos_token_id], "logprobs": [0.0], "env_mask": [0], "env_reward": None}
        start = sequence["prompt_length"]
        end = None if longest is None else start + longest
        return {
            "prompt_ids": sequence["token_ids"][:start],
            "completion_ids": sequence["token_ids"][start:end],
            "logprobs": sequence["logprobs"][start:end],
            "env_mask": sequence["loss_mask"][start:end],
            "env_reward": reward,
        }


def aenv_reward(completions: list[Any], env_reward: list[float | None], **kwargs: Any) -> list[float | None]:
    """The reward function for `AEnvRollout`: what the environment gave, and None for an unscored episode."""
    return env_reward


def task_of(prompt: Any) -> Any:
    """The task in a prompt: its id, or JSON such as {"split": "train", "index": 3}, as text or as the content of the last message."""
    text = prompt if isinstance(prompt, str) else prompt[-1]["content"]
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text
