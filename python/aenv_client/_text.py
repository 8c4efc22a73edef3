"""Episodes whose actions and observations are texts, for frameworks with the interface of Gymnasium."""

from __future__ import annotations

import json
import re
import string
from typing import Any, Collection, Mapping, Sequence, TypedDict

import numpy as np

from . import Client, Reward, Session, Step, as_text
from .errors import AEnvError, reward_of

CHARACTERS = string.printable
_NOT_PRINTABLE = re.compile(f"[^{re.escape(CHARACTERS)}]")


class EpisodeSettings(TypedDict, total=False):
    """What the environments of all these frameworks are made with, besides their own arguments."""

    #: Of the platform's control port; $AENV_SYSTEM_URL if None.
    url: str | None
    api_key: str | None
    #: Tasks are drawn from this split only.
    split: str | None
    #: Ids of the tasks to draw from; all if None.
    tasks: Sequence[str] | None
    #: Variables of the instances.
    variables: Mapping[str, str] | None
    #: After so many turns the episode is scored and truncated; 20 by default.
    max_turns: int
    #: Of a request, in seconds; 60 by default.
    timeout: float


class TextEpisodes:
    """One episode after the other, each in a session of its own. After an error the episode is over."""

    def __init__(
        self,
        environment: str,
        *,
        max_length: int,
        url: str | None = None,
        api_key: str | None = None,
        split: str | None = None,
        tasks: Sequence[str] | None = None,
        variables: Mapping[str, str] | None = None,
        max_turns: int = 20,
        timeout: float = 60.0,
    ) -> None:
        self._environment = environment
        self._client = Client(url, api_key=api_key, timeout=timeout)
        self._split = split
        self._tasks = None if tasks is None else list(tasks)
        self._variables = variables
        self._max_turns = max_turns
        self._max_length = max_length
        self._turns = 0
        self.session: Session | None = None

    def begin(self, random: Any, task: str | None = None) -> Session:
        """A new episode: of the given task, or of one that is drawn."""
        self.end()
        if self._tasks is None:
            self._tasks = [one["id"] for one in self._client.environments.tasks(self._environment, split=self._split)]
        if task is None and self._tasks:
            task = self._tasks[int(random.integers(len(self._tasks)))]
        seed = int(random.integers(2**31))
        self.session = self._client.sessions.create(self._environment, task, seed=seed, variables=self._variables)
        self._turns = 0
        return self.session

    def act(self, action: str, tools: Collection[str] | None = None, role: str | None = None) -> Step:
        """
        A tool call as JSON, `{"name", "arguments"}`, or a text that the agent says. `tools` are those that it may call, and `role` is who
        acts, in an environment with roles.
        """
        assert self.session is not None
        call = _tool_call(action)
        if call is not None and tools is not None and call[0] not in tools:
            return Step(f"there is no tool '{call[0]}'; there are: {', '.join(tools)}", [], True, False, None)
        try:
            return self.session.say(action, role=role) if call is None else self.session.call_tool(*call, role=role)
        except AEnvError:
            self.end()
            raise

    def is_last_turn(self) -> bool:
        """Counts a turn. The last one is scored and truncated."""
        self._turns += 1
        return self._turns >= self._max_turns

    def score(self) -> Reward:
        """Scores the episode and ends it."""
        assert self.session is not None
        try:
            return self.session.score()
        finally:
            self.end()

    def score_roles(self) -> dict[str, float]:
        """Scores the episode and ends it: the reward of each role. Raises `Unscored` if one has none."""
        assert self.session is not None
        try:
            return {role: reward_of(outcome) for role, outcome in self.session.score_roles().items()}
        finally:
            self.end()

    def roles(self) -> list[str]:
        """The roles of the environment, in its order; none if it is for one agent. Begins an episode to learn them, and ends it."""
        session = self.begin(np.random.default_rng(0))
        self.end()
        return list(session.roles)

    def end(self) -> None:
        session, self.session = self.session, None
        if session is None:
            return
        try:
            session.close()
        except AEnvError:
            # The server ends it when it is idle.
            pass

    def close(self) -> None:
        self.end()
        self._client.close()

    def clean(self, observation: Any) -> str:
        """The observation as a value of the space: without other characters, and cut."""
        return _NOT_PRINTABLE.sub("", as_text(observation))[: self._max_length]


def _tool_call(action: str) -> tuple[str, dict[str, Any]] | None:
    """The call in an action that is a JSON object with a `name`; None for any other text."""
    try:
        value = json.loads(action)
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", {})
    return value["name"], arguments if isinstance(arguments, dict) else {}
