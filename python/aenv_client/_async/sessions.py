"""Sessions: one episode, driven action by action by a trainer that samples itself."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Mapping

from .. import _wire as wire
from .._wire import Call
from ..errors import PlatformError, raise_unscored, reward_of
from ..records import Group, described, records
from ..types import Outcome, Reward, SessionRole, Step, Task, Tool
from .http import AsyncHttp


class AsyncSessions(Group):
    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def create(
        self,
        environment: str,
        task: str | Mapping[str, Any] | None = None,
        *,
        seed: int | None = None,
        ttl_seconds: int | None = None,
        variables: Mapping[str, str] | None = None,
        timeout: float = 300.0,
    ) -> AsyncSession:
        """
        Begins an episode. `task` is an id, or `{"split", "index"}` or `{"inline"}`. The server ends a session that is idle for
        `ttl_seconds`. Raises `Unscored` if the platform fails.
        """
        wanted = {"id": task} if isinstance(task, str) else task
        given = None if variables is None else dict(variables)
        fields = {"environment": environment, "task": wanted, "seed": seed, "ttl_seconds": ttl_seconds, "variables": given}
        call = Call(f"begin a session of '{environment}'", "POST", "/sessions", wire.without_none(fields), rule="rejected", timeout=timeout)
        try:
            return AsyncSession(self._http, environment, await self._http.send(call))
        except PlatformError as error:
            raise_unscored(error, "start")


class AsyncSession:
    """One episode. `async with` deletes it at the end."""

    def __init__(self, http: AsyncHttp, environment: str, record: Mapping[str, Any]) -> None:
        self._http = http
        self._path = f"/sessions/{wire.segment(str(record['session']))}"
        self.environment = environment
        self.id = str(record["session"])
        #: What the agent sees first.
        self.observation: Any = record.get("observation")
        #: The messages that an agent begins with.
        self.messages: list[dict[str, Any]] = list(record.get("messages") or [])
        self.tools: list[Tool] = records(Tool, record.get("tools"))
        self.task: Task | None = Task(record["task"]) if record.get("task") else None
        #: What each role begins with; empty in an environment without roles.
        self.roles: dict[str, SessionRole] = {name: SessionRole(one) for name, one in (record.get("roles") or {}).items()}
        #: The roles that may act at the beginning.
        self.turn: list[str] = list(record.get("turn") or [])

    def __repr__(self) -> str:
        task = {} if self.task is None else {"task": self.task.id}
        return described(type(self).__name__, self.id, environment=self.environment, **task)

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, role: str | None = None, timeout: float | None = None
    ) -> Step:
        """
        Calls a tool, once. A tool that fails gives a step with `is_error`; only a failure of the platform raises. `role` names who
        acts, in an environment with roles.
        """
        return await self._step(f"call tool '{name}'", {"tool": {"name": name, "arguments": dict(arguments or {})}}, role, timeout)

    async def say(self, text: str, *, role: str | None = None, timeout: float | None = None) -> Step:
        """The agent speaks without calling a tool. The environment answers, or the episode is done."""
        return await self._step("send a message", {"text": text}, role, timeout)

    async def score(
        self, text: str | None = None, *, arguments: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> Reward:
        """The episode's reward, computed once. `arguments` are those of the reward. Raises `Unscored` where there is none."""
        outcome = (await self._score(text, arguments, timeout))["outcome"]
        reward = reward_of(outcome)
        return Reward(reward, dict(outcome.get("components") or {}), dict(outcome.get("weights") or {}))

    async def score_roles(self, *, arguments: Mapping[str, Any] | None = None, timeout: float | None = None) -> dict[str, Outcome]:
        """How the episode ended for each role: one may be scored and another one not. See `reward_of`. Computed once, with `score`."""
        answer = await self._score(None, arguments, timeout)
        return {name: Outcome(one["outcome"]) for name, one in (answer.get("roles") or {}).items()}

    async def close(self) -> None:
        """Ends the session and its instance. Closing twice is allowed."""
        await self._http.send(Call("end the session", "DELETE", self._path))

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            await self.close()
        except PlatformError:
            # The server ends it when it is idle; the block's own result is not lost for that.
            pass

    async def _score(self, text: str | None, arguments: Mapping[str, Any] | None, timeout: float | None) -> Mapping[str, Any]:
        body = wire.without_none({"text": text, "arguments": arguments})
        call = Call("score the session", "POST", f"{self._path}/score", body, rule="once", timeout=timeout)
        try:
            return dict(await self._http.send(call))
        except PlatformError as error:
            raise_unscored(error, "score")

    async def _step(self, doing: str, body: dict[str, Any], role: str | None, timeout: float | None) -> Step:
        named = body if role is None else {**body, "role": role}
        call = Call(f"{doing} of '{self.environment}'", "POST", f"{self._path}/step", named, rule="once", timeout=timeout)
        try:
            answer = await self._http.send(call)
        except PlatformError as error:
            raise_unscored(error, "play")
        reward = answer.get("reward")
        return Step(
            observation=answer.get("observation"),
            content=list(answer.get("content") or []),
            is_error=bool(answer.get("is_error", False)),
            done=bool(answer.get("done", False)),
            reward=None if reward is None else float(reward),
            turn=list(answer.get("turn") or []),
            rewards=dict(answer.get("rewards") or {}),
            observations=dict(answer.get("observations") or {}),
        )
