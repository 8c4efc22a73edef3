"""
verl: an agent loop that plays episodes on AEnv against verl's own rollout servers. Tested with verl 0.9.1.

In the file that `actor_rollout_ref.rollout.agent.agent_loop_config_path` names:

    - name: aenv
      _target_: aenv_client.verl.AEnvAgentLoop
      environment: shop@1.0.0
      url: http://aenv:8080

Rows need `extra_info.task` and `agent_name: aenv`. An unscored episode raises `Unscored`: with `trainer.use_v1`, the default, verl
leaves the episode out. `limits.turns` and the like bound an episode; `max_tokens` of the sampling parameters bounds a turn. Without it
verl's server does, by the length of its context: `response_length` includes the results of tools, and is not a limit for one turn.
"""

from __future__ import annotations

import uuid
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from ._service import RolloutService, sampling_of, sequences_of
from .types import RolloutResult, Sequence

_SAMPLING = ("temperature", "top_p", "top_k", "repetition_penalty")


class AEnvAgentLoop(AgentLoopBase):  # type: ignore[misc]
    def __init__(
        self,
        *args: Any,
        environment: str | None = None,
        url: str | None = None,
        api_key: str | None = None,
        model_name: str | None = None,
        limits: dict[str, Any] | None = None,
        retries: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._service = RolloutService(environment, url, api_key, dict(limits or {}), retries)
        self._model_name = model_name or str(self.config.actor_rollout_ref.model.path)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput | list[AgentLoopOutput]:
        request = uuid.uuid4().hex
        # The same server for all turns of an episode, so that its prefix cache is used.
        address, _ = await self.server_manager._acquire_server(request)
        try:
            model = {
                "base_url": f"http://{address}/v1",
                "name": self._model_name,
                "tokens": "service",
                "sampling": sampling_of(sampling_params, _SAMPLING),
            }
            result = await self._service.play(row, model)
        finally:
            self.server_manager._release_server(address, request_id=request)
        reward, sequences = sequences_of(result)
        outputs = [self._output(result, sequence, reward, row) for sequence in sequences]
        return outputs[0] if len(outputs) == 1 else outputs

    def _output(self, result: RolloutResult, sequence: Sequence, reward: float, row: dict[str, Any]) -> AgentLoopOutput:
        prompt = sequence["prompt_length"]
        end = prompt + int(self.rollout_config.response_length)
        steps = _global_steps(sequence, row)
        return AgentLoopOutput(
            prompt_ids=sequence["token_ids"][:prompt],
            response_ids=sequence["token_ids"][prompt:end],
            response_mask=sequence["loss_mask"][prompt:end],
            response_logprobs=sequence["logprobs"][prompt:end],
            reward_score=reward,
            num_turns=len(result["messages"]),
            metrics=AgentLoopMetrics(
                generate_sequences=result["timing"].get("model_ms", 0) / 1000, tool_calls=result["timing"].get("tools_ms", 0) / 1000
            ),
            extra_fields={
                # verl needs the same keys for every sample of a batch; an environment always has the same components.
                "reward_extra_info": {f"reward/{name}": value for name, value in sorted(result["outcome"].get("components", {}).items())},
                "min_global_steps": min(steps),
                "max_global_steps": max(steps),
            },
        )


def _global_steps(sequence: Sequence, row: dict[str, Any]) -> list[int]:
    """The versions of the weights as numbers; verl casts them to int, so None is not allowed."""
    versions = [str(span["version"]) for span in sequence["weight_versions"]]
    numbers = [int(version) for version in versions if version.isdigit()]
    return numbers or [int(row.get("global_steps") or 0)]
