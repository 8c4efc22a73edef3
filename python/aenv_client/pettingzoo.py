"""
PettingZoo: an environment that several agents play together, as a `ParallelEnv` with texts.

    from aenv_client.pettingzoo import AEnvParallel, Role
    env = AEnvParallel("market@1.0.0", {"buyer": Role(tools=["bid"], component="saved"), "seller": Role(tools=["offer"], component="earned")})

In a step each agent acts once, in the order of the roles; an empty text does nothing. Each agent sees the results of its own actions.
The rewards of an agent add up to its component of the score. A failure of the platform raises `Unscored`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping, Sequence

import numpy as np
from gymnasium.spaces import Text
from pettingzoo import ParallelEnv

from . import Reward, Step
from ._text import CHARACTERS, EpisodeSettings, TextEpisodes

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class Role:
    """What one agent may do and what it is rewarded for."""

    #: Names of its tools; all if None.
    tools: Sequence[str] | None = None
    #: The component of the score that is its reward; the whole score if None.
    component: str | None = None


_NOTHING = Step("", [], False, False, None)


class AEnvParallel(ParallelEnv[str, str, str]):
    metadata = {"name": "aenv_v0", "render_modes": []}

    def __init__(
        self,
        environment: str,
        roles: Mapping[str, Role],
        *,
        max_length: int = 16_384,
        render_mode: str | None = None,
        **settings: Unpack[EpisodeSettings],
    ) -> None:
        self.render_mode = render_mode
        self.possible_agents = list(roles)
        self.agents: list[str] = []
        self.observation_spaces = {agent: Text(max_length, min_length=0, charset=CHARACTERS) for agent in roles}
        self.action_spaces = {agent: Text(max_length, min_length=0, charset=CHARACTERS) for agent in roles}
        self._roles = dict(roles)
        self._random = np.random.default_rng()
        self._given: dict[str, float] = {}
        self._episodes = TextEpisodes(environment, max_length=max_length, **settings)

    def observation_space(self, agent: str) -> Text:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Text:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        if seed is not None:
            self._random = np.random.default_rng(seed)
        session = self._episodes.begin(self._random, (options or {}).get("task"))
        self.agents = list(self.possible_agents)
        self._given = dict.fromkeys(self.agents, 0.0)
        task = (session.task or {}).get("id", "")
        observation = self._episodes.clean(session.observation)
        return {agent: observation for agent in self.agents}, {agent: {"task": task} for agent in self.agents}

    def step(
        self, actions: Mapping[str, str]
    ) -> tuple[dict[str, str], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        if self._episodes.session is None:
            raise RuntimeError("the episode is over: call reset() first")
        agents, steps, done = self.agents, dict[str, Step](), False
        for agent in agents:
            action = actions.get(agent, "")
            # After the episode's end the others have no turn left.
            steps[agent] = _NOTHING if done or action == "" else self._episodes.act(action, self._roles[agent].tools)
            done = done or steps[agent].done
        truncated = self._episodes.is_last_turn() and not done
        rewards = {agent: step.reward or 0.0 for agent, step in steps.items()}
        infos: dict[str, dict[str, Any]] = {agent: {"is_error": step.is_error} for agent, step in steps.items()}
        if done or truncated:
            score = self._episodes.score()
            for agent in agents:
                total = _reward_for(self._roles[agent], score)
                rewards[agent] = total - self._given[agent]
                infos[agent]["score"] = total
            self.agents = []
        for agent in agents:
            self._given[agent] += rewards[agent]
        observations = {agent: self._episodes.clean(step.observation) for agent, step in steps.items()}
        return observations, rewards, dict.fromkeys(agents, done), dict.fromkeys(agents, truncated), infos

    def close(self) -> None:
        self._episodes.close()


def _reward_for(role: Role, score: Reward) -> float:
    if role.component is None:
        return score.reward
    if role.component not in score.components:
        raise ValueError(f"the score has no component '{role.component}'; it has: {', '.join(score.components) or 'none'}")
    return score.components[role.component]
