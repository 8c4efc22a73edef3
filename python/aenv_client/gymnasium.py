"""
Gymnasium: the episodes of an environment as an `Env` with texts.

    import gymnasium, aenv_client.gymnasium
    env = gymnasium.make("AEnv-v0", environment="echo@1.0.0", url="http://localhost:8080")
    observation, info = env.reset(seed=7)
    observation, reward, terminated, truncated, info = env.step('{"name": "echo", "arguments": {"text": "hello"}}')

An action is a tool call as JSON, or any other text, which the agent says. The rewards of an episode add up to its score. A failure of
the platform raises `Unscored`: it is never a reward. Vector environments: `SyncVectorEnv`, or `AsyncVectorEnv(..., shared_memory=False)`,
because shared memory does not carry texts.
"""

from __future__ import annotations

import json
import re
import zlib
from typing import TYPE_CHECKING, Any, Iterable

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, Text
from numpy.typing import NDArray

from ._text import CHARACTERS, EpisodeSettings, TextEpisodes

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AEnv(gymnasium.Env[str, str]):
    """
    One environment, whose tasks are drawn with `np_random`: all of them, those of a `split`, or the given `tasks`. `reset` takes a
    task's id as `options={"task": ...}`. After `max_turns` actions the episode is scored and truncated.
    """

    metadata = {"render_modes": [], "render_fps": 1}

    def __init__(
        self,
        environment: str,
        *,
        max_length: int = 16_384,
        render_mode: str | None = None,
        **settings: Unpack[EpisodeSettings],
    ) -> None:
        self.render_mode = render_mode
        self.observation_space = Text(min_length=0, max_length=max_length, charset=CHARACTERS)
        self.action_space = Text(min_length=0, max_length=max_length, charset=CHARACTERS)
        #: The tools of the current episode, as MCP describes them, and the messages that an agent begins with.
        self.tools: list[dict[str, Any]] = []
        self.messages: list[dict[str, Any]] = []
        self._given = 0.0
        self._episodes = TextEpisodes(environment, max_length=max_length, **settings)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        session = self._episodes.begin(self.np_random, (options or {}).get("task"))
        self._given = 0.0
        self.tools, self.messages = session.tools, session.messages
        return self._episodes.clean(session.observation), {"task": (session.task or {}).get("id", "")}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._episodes.session is None:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset() first")
        step = self._episodes.act(action)
        truncated = self._episodes.is_last_turn() and not step.done
        reward = step.reward or 0.0
        info: dict[str, Any] = {"is_error": step.is_error}
        if step.done or truncated:
            score = self._episodes.score()
            # The rewards of the steps are a part of the score, not an addition to it.
            reward = score.reward - self._given
            info.update(score=score.reward, components=score.components)
        self._given += reward
        return self._episodes.clean(step.observation), reward, step.done, truncated, info

    def close(self) -> None:
        self._episodes.close()


class Menu(gymnasium.Wrapper[Any, Any, Any, Any]):
    """
    An environment for learners that need numbers, such as those of Stable-Baselines3 and RLlib. An action is the index of one of the given
    texts or tool calls, and an observation is a vector of `features` zeros and ones, one for each hash of a word.
    """

    def __init__(self, env: gymnasium.Env[str, str], actions: Iterable[str | dict[str, Any]], features: int = 64) -> None:
        super().__init__(env)
        self.actions = [one if isinstance(one, str) else json.dumps(one) for one in actions]
        self.action_space = Discrete(len(self.actions))
        self.observation_space = Box(0.0, 1.0, (features,), np.float32)
        self._features = features

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return self._encode(observation), info

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(self.actions[int(action)])
        return self._encode(observation), float(reward), terminated, truncated, info

    def _encode(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(self._features, np.float32)
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % self._features] = 1.0
        return vector


gymnasium.register(id="AEnv-v0", entry_point="aenv_client.gymnasium:AEnv")
