"""
verifiers and prime-rl: the tasks of an environment, and a harness that has AEnv play them against the interception server, which
records the tokens. Tested with verifiers 0.4.0.

    [[orchestrator.train.source]]
    env.taskset.id = "aenv-verifiers"
    env.taskset.environment = "shop@1.0.0"
    env.agent.harness.id = "aenv-verifiers"
    env.agent.runtime.type = "subprocess"

The service is at `AENV_SYSTEM_URL`, its token is `AENV_API_KEY`. verifiers loads plugins by the name of a top-level module, which is
`aenv_verifiers`. For an unscored episode the reward raises: the trace is not ok, has no reward, and is left out.
"""

from __future__ import annotations

from typing import Any, Iterator

import verifiers.v1 as vf
from verifiers.v1.runtimes import ProgramResult, Runtime

from . import Client
from ._service import RolloutService, outcome_of
from .errors import Unscored, reward_of
from .types import as_text

_OUTCOME = "aenv_outcome"


class AEnvData(vf.TaskData):
    environment: str


class AEnvTask(vf.Task[AEnvData]):
    @property
    def key(self) -> str:
        return f"{self.data.environment}/{self.data.id}"

    @vf.reward
    async def aenv_reward(self, trace: Any) -> float:
        outcome = trace.info.get(_OUTCOME)
        if outcome is None:
            raise Unscored("the episode was not played by the harness aenv-verifiers", cause="agent", retryable=False)
        return reward_of(outcome)


class AEnvTasksetConfig(vf.TasksetConfig):
    environment: str = ""
    """`name@version` on the platform."""
    split: str | None = None
    url: str | None = None


class AEnvTaskset(vf.Taskset[AEnvTask, AEnvTasksetConfig]):
    def load(self) -> Iterator[AEnvTask]:
        environment = self.config.environment
        if not environment:
            raise ValueError("the taskset aenv-verifiers needs an environment: set env.taskset.environment")
        with Client(self.config.url) as client:
            for task in client.environments.each_task(environment, split=self.config.split):
                # Only for the record: the service gives the agent the environment's own messages.
                prompt = as_text(task.get("prompt")) or task["id"]
                data = AEnvData(id=task["id"], name=task["id"], prompt=prompt, environment=environment)
                yield AEnvTask(data, self.config.task)


class AEnvHarnessConfig(vf.HarnessConfig):
    url: str | None = None
    limits: dict[str, float] = {}
    reward_args: dict[str, Any] = {}
    """Arguments of the environment's reward."""
    service_retries: int = 0
    """Further attempts of the service. The interception server records the model calls of all attempts in one trace, so the default
    is none; verifiers itself repeats an episode with `env.retries`."""


class AEnvHarness(vf.Harness[AEnvHarnessConfig]):
    NEEDS_CONTAINER = False
    EXECUTES_CODE = False
    APPENDS_SYSTEM_PROMPT = True

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: Any,
        runtime: Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: AEnvData,
    ) -> ProgramResult:
        service = RolloutService(
            url=self.config.url,
            limits=self.config.limits,
            retries=self.config.service_retries,
            reward_args=self.config.reward_args,
        )
        model = {"base_url": endpoint, "api_key": secret, "name": ctx.model, "tokens": "trainer"}
        try:
            result = await service.play({"environment": data.environment, "task": data.id}, model)
            trace.info[_OUTCOME] = dict(result["outcome"])
        except Unscored as error:
            trace.info[_OUTCOME] = outcome_of(error)
        return ProgramResult(exit_code=0, stdout="", stderr="")


__all__ = ["AEnvHarness", "AEnvTask", "AEnvTaskset"]
