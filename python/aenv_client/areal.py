"""
AReaL: an agent that plays episodes on AEnv against AReaL's proxy, which records the tokens. Tested with AReaL 1.0.4.

    trainer.train(workflow="aenv_client.areal.AEnvAgent", workflow_kwargs={"environment": "shop@1.0.0", "url": "http://aenv:8080"})

Rows need `task`. An unscored episode raises `Unscored`. AReaL then rejects the episode, and the other episodes of its group with it;
`skip_unscored(workflow)` leaves out the one episode only.
"""

from __future__ import annotations

import logging
import os
from typing import Any, Mapping

from ._service import RolloutService
from .errors import Unscored, reward_of

logger = logging.getLogger(__name__)


class AEnvAgent:
    """
    A class that AReaL constructs with `workflow_kwargs`. It can be pickled, for the mode `subproc`. AReaL's proxy records the turns of
    all attempts in one session, and a failed attempt would be trained on: leave `retries` at 0, unless AReaL drops them.
    """

    def __init__(
        self,
        environment: str | None = None,
        url: str | None = None,
        api_key: str | None = None,
        limits: Mapping[str, Any] | None = None,
        retries: int = 0,
        sampling: Mapping[str, Any] | None = None,
    ) -> None:
        self._service = RolloutService(environment, url, api_key, dict(limits or {}), retries)
        self._sampling = dict(sampling or {})

    async def run(self, data: Mapping[str, Any], **extra_kwargs: Any) -> float:
        """In the mode `subproc`, AReaL gives the address and key in environment variables."""
        model = {
            "base_url": extra_kwargs.get("base_url") or os.environ["OPENAI_BASE_URL"],
            "api_key": extra_kwargs.get("api_key") or os.environ["OPENAI_API_KEY"],
            "tokens": "trainer",
            "sampling": self._sampling,
        }
        result = await self._service.play(data, model)
        # AReaL accepts no int.
        return float(reward_of(result["outcome"]))


def skip_unscored(workflow: Any) -> Any:
    """A workflow of AReaL, such as `OpenAIProxyWorkflow`, that returns None for an unscored episode instead of raising."""
    from areal.api import RolloutWorkflow

    class SkipUnscored(RolloutWorkflow):  # type: ignore[misc]
        async def arun_episode(self, engine: Any, data: dict[str, Any]) -> Any:
            try:
                return await workflow.arun_episode(engine, data)
            except Unscored as error:
                logger.warning("left out: %s", error)
                return None

    return SkipUnscored()
