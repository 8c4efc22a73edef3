# Generated from _async by make_sync.py.
"""Sessions: one episode, driven action by action by a trainer that samples itself."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Mapping

from .. import _wire as wire
from .._wire import Call
from ..errors import PlatformError, raise_unscored, reward_of
from ..records import Group, described, records
from ..types import Reward, Step, Task, Tool
from .http import Http


class Sessions(Group):
    def __init__(self, http: Http) -> None:
        self._http = http

    def create(
        self,
        environment: str,
        task: str | Mapping[str, Any] | None = None,
        *,
        seed: int | None = None,
        ttl_seconds: int | None = None,
        variables: Mapping[str, str] | None = None,
        timeout: float = 300.0,
    ) -> Session:
        """
        Begins an episode. `task` is an id, or `{"split", "index"}` or `{"inline"}`. The server ends a session that is idle for
        `ttl_seconds`. Raises `Unscored` if the platform fails.
        """
        wanted = {"id": task} if isinstance(task, str) else task
        given = None if variables is None else dict(variables)
        fields = {"environment": environment, "task": wanted, "seed": seed, "ttl_seconds": ttl_seconds, "variables": given}
        call = Call(f"begin a session of '{environment}'", "POST", "/sessions", wire.without_none(fields), rule="rejected", timeout=timeout)
        try:
            return Session(self._http, environment, self._http.send(call))
        except PlatformError as error:
            raise_unscored(error, "start")


class Session:
    """One episode. `with` deletes it at the end."""

    def __init__(self, http: Http, environment: str, record: Mapping[str, Any]) -> None:
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

    def __repr__(self) -> str:
        task = {} if self.task is None else {"task": self.task.id}
        return described(type(self).__name__, self.id, environment=self.environment, **task)

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Step:
        """Calls a tool, once. A tool that fails gives a step with `is_error`; only a failure of the platform raises."""
        return self._step(f"call tool '{name}'", {"tool": {"name": name, "arguments": dict(arguments or {})}}, timeout)

    def say(self, text: str, *, timeout: float | None = None) -> Step:
        """The agent speaks without calling a tool. The environment answers, or the episode is done."""
        return self._step("send a message", {"text": text}, timeout)

    def score(
        self, text: str | None = None, *, arguments: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> Reward:
        """The episode's reward, computed once. `arguments` are those of the reward. Raises `Unscored` where there is none."""
        body = wire.without_none({"text": text, "arguments": arguments})
        call = Call("score the session", "POST", f"{self._path}/score", body, rule="once", timeout=timeout)
        try:
            outcome = (self._http.send(call))["outcome"]
        except PlatformError as error:
            raise_unscored(error, "score")
        reward = reward_of(outcome)
        return Reward(reward, dict(outcome.get("components") or {}), dict(outcome.get("weights") or {}))

    def close(self) -> None:
        """Ends the session and its instance. Closing twice is allowed."""
        self._http.send(Call("end the session", "DELETE", self._path))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.close()
        except PlatformError:
            # The server ends it when it is idle; the block's own result is not lost for that.
            pass

    def _step(self, doing: str, body: dict[str, Any], timeout: float | None) -> Step:
        call = Call(f"{doing} of '{self.environment}'", "POST", f"{self._path}/step", body, rule="once", timeout=timeout)
        try:
            answer = self._http.send(call)
        except PlatformError as error:
            raise_unscored(error, "play")
        reward = answer.get("reward")
        return Step(
            observation=answer.get("observation"),
            content=list(answer.get("content") or []),
            is_error=bool(answer.get("is_error", False)),
            done=bool(answer.get("done", False)),
            reward=None if reward is None else float(reward),
        )
