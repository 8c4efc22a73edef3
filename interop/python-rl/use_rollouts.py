"""
Plays a scored, an unscored and a drifting episode through the module of a framework: use_rollouts.py FRAMEWORK URL MODELS, where MODELS
is a JSON object with the addresses of a good, a broken and a drifting model. Prints one JSON report.
"""

import asyncio
import enum
import json
import math
import sys
import types
from dataclasses import dataclass, field
from types import SimpleNamespace
from urllib.parse import urlsplit

from aenv_client import Unscored

FRAMEWORK, URL, MODELS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
ROW = {"environment": "echo@1.0.0", "task": "greet"}


def text(tokens):
    """The scripted model has one token for each character."""
    return "".join(chr(one) for one in tokens)


def trained(tokens, mask):
    return text([id for id, is_trained in zip(tokens, mask) if is_trained])


@dataclass
class Sample:
    """The fields of slime's sample that a generate function reads and sets."""

    class Status(enum.Enum):
        PENDING = "pending"
        COMPLETED = "completed"
        TRUNCATED = "truncated"
        ABORTED = "aborted"
        FAILED = "failed"

    index: int = 0
    group_index: int = 0
    rollout_id: int | None = None
    session_id: str | None = "session-1"
    prompt: str = ""
    tokens: list = field(default_factory=list)
    response: str = ""
    response_length: int = 0
    reward: float | None = None
    loss_mask: list | None = None
    rollout_log_probs: list | None = None
    weight_versions: list = field(default_factory=list)
    status: Status = Status.PENDING
    metadata: dict = field(default_factory=dict)
    remove_sample: bool = False


def check_sample(sample):
    """slime's own rules of length."""
    assert 0 < sample.response_length < len(sample.tokens)
    assert len(sample.loss_mask) == len(sample.rollout_log_probs) == sample.response_length
    return {
        "trained": trained(sample.tokens[-sample.response_length :], sample.loss_mask),
        "reward": None if math.isnan(sample.reward) else sample.reward,
        "status": sample.status.value,
        "removed": sample.remove_sample,
        "versions": sample.weight_versions,
        "rollout_id": sample.rollout_id,
    }


async def slime():
    base = types.ModuleType("slime.rollout.filter_hub.base_types")
    base.DynamicFilterOutput = lambda keep, reason: SimpleNamespace(keep=keep, reason=reason)
    sys.modules.update({name: types.ModuleType(name) for name in ("slime", "slime.rollout", "slime.rollout.filter_hub")})
    sys.modules[base.__name__] = base
    from aenv_client.slime import generate, keep_scored

    report, samples = {}, {}
    for name, address in MODELS.items():
        where = urlsplit(address)
        args = SimpleNamespace(sglang_router_ip=where.hostname, sglang_router_port=where.port)
        made = await generate(args, Sample(index=7, metadata=ROW), {"temperature": 1.0, "top_p": 1.0, "max_new_tokens": 9})
        samples[name] = made
        report[name] = [check_sample(one) for one in made] if isinstance(made, list) else check_sample(made)
    kept = keep_scored(None, [samples["good"], samples["drifting"]])
    dropped = keep_scored(None, [samples["good"], samples["broken"]])
    return {**report, "kept": kept.keep, "dropped": [dropped.keep, dropped.reason]}


async def miles():
    from aenv_client import miles

    report = {}
    for name, address in MODELS.items():
        if name == "silent":
            continue
        metadata = await miles.run(address.removesuffix("/v1"), None, {"temperature": 1.0}, ROW)
        try:
            report[name] = await miles.reward(None, SimpleNamespace(metadata=metadata))
        except Unscored as error:
            report[name] = str(error)
    # The server does not know the first one: its request is still on the way.
    miles._running["unknown"] = None
    playing = asyncio.create_task(miles.run(MODELS["silent"].removesuffix("/v1"), None, {}, ROW))
    while len(miles._running) < 2:
        await asyncio.sleep(0)
    await accepted([*miles._running][1])
    await miles.abort(None)
    return {**report, "aborted": (await playing)["aenv_outcome"]["cause"]}


async def accepted(id):
    """Returns when the service has the rollout."""
    from aenv_client import AsyncClient, NotFound

    async with AsyncClient(URL) as client:
        while True:
            try:
                return await client.rollouts.get(id)
            except NotFound:
                await asyncio.sleep(0.05)


async def areal():
    from aenv_client._service import RolloutService
    from aenv_client.areal import AEnvAgent

    agent = AEnvAgent(url=URL)
    report = {"retries": {who: RolloutService().rollout(ROW, {"tokens": who})["retries"] for who in ("service", "trainer")}}
    report["retries"]["areal"] = agent._service.rollout(ROW, {})["retries"]
    for name, address in MODELS.items():
        try:
            reward = await agent.run(ROW, base_url=address, api_key="episode-key", http_client=None)
            report[name] = [reward, type(reward).__name__]
        except Unscored as error:
            report[name] = str(error)
    return report


async def verl():
    """With stand-ins for verl's classes; use_torch_rollouts.py has the real ones."""

    class AgentLoopBase:
        def __init__(self, server_manager):
            self.server_manager, self.rollout_config = server_manager, SimpleNamespace(response_length=100)

    class Servers:
        """Stands for the load balancer."""

        def __init__(self, address):
            self.address, self.held = address, 0

        async def _acquire_server(self, request_id):
            self.held += 1
            return self.address, None

        def _release_server(self, server_id, request_id=None):
            self.held -= 1

    loop = types.ModuleType("verl.experimental.agent_loop.agent_loop")
    loop.AgentLoopBase, loop.AgentLoopMetrics, loop.AgentLoopOutput = AgentLoopBase, SimpleNamespace, SimpleNamespace
    sys.modules.update({name: types.ModuleType(name) for name in ("verl", "verl.experimental", "verl.experimental.agent_loop")})
    sys.modules[loop.__name__] = loop
    from aenv_client.verl import AEnvAgentLoop

    report = {}
    for name, address in MODELS.items():
        servers = Servers(urlsplit(address).netloc)
        agent = AEnvAgentLoop(servers, environment="echo@1.0.0", url=URL, model_name="m")
        try:
            made = await agent.run({"temperature": 1.0, "top_p": 1.0}, extra_info={"task": "greet"}, global_steps=9)
            report[name] = [
                {"trained": trained(one.response_ids, one.response_mask), "score": one.reward_score, "step": one.extra_fields["min_global_steps"]}
                for one in (made if isinstance(made, list) else [made])
            ]
        except Unscored as error:
            report[name] = str(error)
        assert servers.held == 0
    return report


def trl_trainer():
    return SimpleNamespace(
        args=SimpleNamespace(temperature=1.0, max_completion_length=4096),
        processing_class=SimpleNamespace(pad_token_id=0, eos_token_id=2),
    )


def trl():
    """With a stand-in for the trainer; use_torch.py has the real one."""
    from aenv_client.trl_rollout import AEnvRollout, aenv_reward

    report = {}
    for name, address in MODELS.items():
        rows = AEnvRollout("echo@1.0.0", url=URL, model_url=address)(["greet", '{"id": "greet"}'], trl_trainer())
        lengths = {len(rows[key][0]) for key in ("completion_ids", "logprobs", "env_mask")}
        report[name] = {
            "trained": [trained(ids, mask) for ids, mask in zip(rows["completion_ids"], rows["env_mask"])],
            "rewards": aenv_reward(completions=[], **rows),
            "aligned": len(lengths) == 1,
        }
    return report


def openenv():
    from openenv.core.harness import TrainableSession
    from openenv.core.harness.training import TrainingTrace

    from aenv_client.openenv import AEnvSessionFactory

    report = {}
    for name, address in MODELS.items():
        factory = AEnvSessionFactory("echo@1.0.0", url=URL, model={"base_url": address, "name": "m"})
        session = factory.create("greet", seed=3)
        assert isinstance(session, TrainableSession)
        exit_code = session.wait_for_completion(60)
        trace = session.fetch_training_trace()
        # What crosses a process border is validated again.
        turns = TrainingTrace.model_validate(trace.model_dump()).turns
        verified = session.verify([])
        session.close()
        report[name] = {
            "exit_code": exit_code,
            "trained": [trained([*turn.prompt_token_ids, *turn.completion_token_ids], turn.loss_mask) for turn in turns],
            "reward": verified.env_reward,
            "metrics": verified.metrics,
        }
    # The reward refuses this argument.
    factory = AEnvSessionFactory("echo@1.0.0", url=URL, model={"base_url": MODELS["good"], "name": "m"}, reward_args={"calls": 0})
    session = factory.create("greet")
    session.wait_for_completion(60)
    return {**report, "refused": session.verify([]).env_reward}


async def verifiers():
    import verifiers.v1 as vf
    from verifiers.v1.clients import EvalClientConfig, ModelContext
    from verifiers.v1.utils.loaders import load_environment

    report = {}
    for name, address in MODELS.items():
        config = vf.SingleAgentEnvConfig.model_validate(
            {
                "taskset": {"id": "aenv-verifiers", "environment": "echo@1.0.0", "split": "train"},
                "agent": {"harness": {"id": "aenv-verifiers"}, "runtime": {"type": "subprocess"}},
            }
        )
        env = load_environment(config)
        tasks = list(env.taskset)
        client = EvalClientConfig(base_url=address, api_key_var="MODEL_KEY")
        async with env.serving():
            [slot] = env.slots(next(one for one in tasks if one.data.id == "greet"))
            episode = await env.run_slot(slot, ModelContext(model="m", client=client))
        [trace] = episode.traces
        report[name] = {
            "tasks": [task.key for task in tasks],
            "ok": trace.ok,
            "rewards": {key: None if value is None else value.model_dump() for key, value in trace.rewards.items()},
            "error": None if trace.ok else str(trace.errors[-1].message),
            "calls": len(trace.calls),
        }
    return report


def reward_args():
    """The reward of echo refuses 0 calls: an episode with this argument fails at its score."""
    from aenv_client.areal import AEnvAgent
    from aenv_client.trl_rollout import AEnvRollout

    good = MODELS["good"]

    def areal(row):
        try:
            return asyncio.run(AEnvAgent(url=URL).run(row, base_url=good, api_key="episode-key"))
        except Unscored as error:
            return error.stage

    def trl(args):
        return AEnvRollout("echo@1.0.0", url=URL, model_url=good, reward_args=args)(["greet"], trl_trainer())["env_reward"]

    rows = ({"reward_args": {"calls": 1, "absent": None}}, {"reward_args": {"calls": 0}}, {"extra_info": {"reward_args": {"calls": 0}}})
    return {"areal": [areal({**ROW, **one}) for one in rows], "trl": [trl({"calls": 1}), trl({"calls": 0})]}


async def cancelled():
    """The trainer gives up an episode whose model does not answer."""
    from aenv_client import AsyncClient
    from aenv_client._service import RolloutService

    model = {"base_url": MODELS["silent"], "tokens": "trainer"}
    playing = asyncio.create_task(RolloutService(url=URL).play(ROW, model, id="given-up"))
    await accepted("given-up")
    playing.cancel()
    try:
        await playing
    except asyncio.CancelledError:
        async with AsyncClient(URL) as client:
            outcome = (await client.rollouts.result("given-up"))["outcome"]
        return {"raised": "CancelledError", "kind": outcome["kind"], "cause": outcome["cause"]}


def main():
    work = globals()[FRAMEWORK]
    print(json.dumps(asyncio.run(work()) if asyncio.iscoroutinefunction(work) else work()))


main()
