"""
miles: an agent function that plays episodes on AEnv against miles' session server, which records the tokens, and the reward function
that belongs to it. Written against miles 0.1.0.

    --custom-generate-function-path miles.rollout.generate_hub.agentic_tool_call.generate
    --use-session-server --tito-model <family>
    --custom-agent-function-path aenv_client.miles.run
    --custom-rm-path aenv_client.miles.reward

The metadata of a row is `{"environment": "shop@1.0.0", "task": "train-17"}`. The service is at `AENV_SYSTEM_URL`, its token is
`AENV_API_KEY`. miles ignores what the agent function raises, so that the reward function raises `Unscored`.
"""

from __future__ import annotations

import uuid
from typing import Any, Mapping

from ._service import RolloutService, outcome_of, sampling_of
from .errors import PlatformError, Unscored, reward_of

_SAMPLING = ("temperature", "top_p", "top_k")
_OUTCOME = "aenv_outcome"
# A dict keeps their order.
_running: dict[str, None] = {}


async def run(base_url: str, prompt: Any, request_kwargs: Mapping[str, Any], metadata: Mapping[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Plays the episode. The returned outcome gets into `sample.metadata`."""
    id = uuid.uuid4().hex
    model = {"base_url": f"{base_url.rstrip('/')}/v1", "tokens": "trainer", "sampling": sampling_of(request_kwargs or {}, _SAMPLING)}
    _running[id] = None
    try:
        result = await RolloutService(limits=metadata.get("limits") or {}).play(metadata, model, id=id)
        return {_OUTCOME: result["outcome"]}
    except Unscored as error:
        return {_OUTCOME: outcome_of(error)}
    except PlatformError as error:
        return {_OUTCOME: outcome_of(Unscored(error.message, cause="environment", retryable=False, stage="start"))}
    finally:
        _running.pop(id, None)


async def reward(args: Any, sample: Any, **kwargs: Any) -> float:
    """The reward of the episode. Raises `Unscored` if there is none."""
    outcome = (sample.metadata or {}).get(_OUTCOME)
    if outcome is None:
        raise Unscored("the agent function has not ended", cause="agent", retryable=True)
    return reward_of(outcome)


async def abort(args: Any) -> None:
    """Called by miles when it has enough samples."""
    await RolloutService().cancel(list(_running))

