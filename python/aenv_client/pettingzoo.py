"""
PettingZoo: an environment that several agents play together, as a `ParallelEnv` or an `AECEnv` with texts.

    from aenv_client.pettingzoo import AEnvAec, AEnvParallel, Role
    env = AEnvAec("my-game@1.0.0")
    env = AEnvParallel("my-game@1.0.0")
    env = AEnvParallel("market@1.0.0", {"buyer": Role(tools=["bid"], component="saved"), "seller": Role(tools=["offer"], component="earned")})

The agents are the roles of the environment. An environment without roles is divided between agents by `Role`: each has its own tools and
is rewarded with a component of the score, and all see the same prompt. The rewards of an agent add up to its score. A failure of the
platform raises `Unscored`, and so does a role that the environment does not score.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Collection, Mapping, Sequence

import numpy as np
from gymnasium.spaces import Discrete, Text
from numpy.typing import NDArray
from pettingzoo import AECEnv, ParallelEnv

from . import Reward, Step
from ._text import CHARACTERS, EpisodeSettings, TextEpisodes

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class Role:
    """What one agent may do and what it is rewarded for, in an environment without roles."""

    #: Names of its tools; all if None.
    tools: Sequence[str] | None = None
    #: The component of the score that is its reward; the whole score if None.
    component: str | None = None


_NOTHING = Step("", [], False, False, None)


class AEnvParallel(ParallelEnv[str, str, str]):
    """
    In a step each agent acts once, in the order of the roles; an empty text does nothing. With roles of the environment, only those act
    whose turn it is, and the actions of the others are not used. `infos[agent]["turn"]` says whether an agent may act next.
    """

    metadata = {"name": "aenv_v0", "render_modes": []}

    def __init__(
        self,
        environment: str,
        roles: Mapping[str, Role] | None = None,
        *,
        max_length: int = 16_384,
        render_mode: str | None = None,
        **settings: Unpack[EpisodeSettings],
    ) -> None:
        self.render_mode = render_mode
        self._episodes = TextEpisodes(environment, max_length=max_length, **settings)
        self._divided = None if roles is None else dict(roles)
        self.possible_agents = list(_roles_of(self._episodes, environment) if roles is None else roles)
        self.agents: list[str] = []
        self.observation_spaces = {agent: Text(max_length, min_length=0, charset=CHARACTERS) for agent in self.possible_agents}
        self.action_spaces = {agent: Text(max_length, min_length=0, charset=CHARACTERS) for agent in self.possible_agents}
        self._random = np.random.default_rng()
        self._given: dict[str, float] = {}
        self._turn: list[str] = []

    def observation_space(self, agent: str) -> Text:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Text:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        if seed is not None:
            self._random = np.random.default_rng(seed)
        session = self._episodes.begin(self._random, (options or {}).get("task"))
        if self._divided is not None and session.roles:
            self._episodes.end()
            raise ValueError(f"the environment has roles of its own, {', '.join(session.roles)}: leave out 'roles'")
        self.agents = list(self.possible_agents)
        self._given = dict.fromkeys(self.agents, 0.0)
        self._turn = session.turn
        task = (session.task or {}).get("id", "")
        seen = {agent: session.roles[agent].observation if session.roles else session.observation for agent in self.agents}
        return {agent: self._episodes.clean(text) for agent, text in seen.items()}, {
            agent: {"task": task, **self._turn_of(agent)} for agent in self.agents
        }

    def step(
        self, actions: Mapping[str, str]
    ) -> tuple[dict[str, str], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        if self._episodes.session is None:
            raise RuntimeError("the episode is over: call reset() first")
        agents, steps, done = self.agents, dict[str, Step](), False
        may_act = agents if self._divided is not None else self._turn
        told, rewards = dict[str, str](), dict.fromkeys(agents, 0.0)
        for agent in agents:
            action = actions.get(agent, "")
            # After the episode's end the others have no turn left.
            steps[agent] = _NOTHING if done or action == "" or agent not in may_act else self._act(agent, action)
            step = steps[agent]
            done = done or step.done
            told.update(step.observations)
            self._turn = step.turn if step is not _NOTHING else self._turn
            gained = step.rewards if self._divided is None else {agent: step.reward}
            for other, reward in gained.items():
                rewards[other] += reward or 0.0
        truncated = self._episodes.is_last_turn() and not done
        infos: dict[str, dict[str, Any]] = {agent: {"is_error": step.is_error} for agent, step in steps.items()}
        if done or truncated:
            for agent, total in self._score(agents).items():
                rewards[agent] = total - self._given[agent]
                infos[agent]["score"] = total
            self.agents, self._turn = [], []
        for agent in agents:
            self._given[agent] += rewards[agent]
            infos[agent].update(self._turn_of(agent))
        observations = {agent: self._episodes.clean(told.get(agent, step.observation)) for agent, step in steps.items()}
        return observations, rewards, dict.fromkeys(agents, done), dict.fromkeys(agents, truncated), infos

    def close(self) -> None:
        self._episodes.close()

    def _act(self, agent: str, action: str) -> Step:
        if self._divided is not None:
            return self._episodes.act(action, self._divided[agent].tools)
        return self._episodes.act(action, role=agent)

    def _score(self, agents: Sequence[str]) -> dict[str, float]:
        if self._divided is None:
            return self._episodes.score_roles()
        score = self._episodes.score()
        return {agent: _reward_for(self._divided[agent], score) for agent in agents}

    def _turn_of(self, agent: str) -> dict[str, bool]:
        return {} if self._divided is not None else {"turn": agent in self._turn}


class AEnvAec(AECEnv[str, Any, Any]):
    """
    The roles of an environment one after the other: `agent_selection` is the first whose turn it is.

    Actions are texts: a tool call as JSON, or words. With `actions` they are the indices of these texts or calls, and the info of an agent
    has an `action_mask` for them, all 0 for one whose turn it is not. `legal` chooses from an agent's observation the actions that it may
    take now; all if None. After `max_turns` actions the episode is scored and truncated.
    """

    metadata = {"name": "aenv_aec_v0", "render_modes": [], "is_parallelizable": False}

    def __init__(
        self,
        environment: str,
        *,
        actions: Sequence[str | dict[str, Any]] | None = None,
        legal: Callable[[str], Collection[Any]] | None = None,
        max_length: int = 16_384,
        render_mode: str | None = None,
        **settings: Unpack[EpisodeSettings],
    ) -> None:
        super().__init__()
        self.render_mode = render_mode
        self._episodes = TextEpisodes(environment, max_length=max_length, **settings)
        self._choice = None if actions is None else list(actions)
        self._legal = legal
        self.possible_agents = _roles_of(self._episodes, environment)
        text = Text(max_length, min_length=0, charset=CHARACTERS)
        self.observation_spaces = {agent: text for agent in self.possible_agents}
        self.action_spaces = {agent: text if self._choice is None else Discrete(len(self._choice)) for agent in self.possible_agents}
        self._random = np.random.default_rng()

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        if seed is not None:
            self._random = np.random.default_rng(seed)
        session = self._episodes.begin(self._random, (options or {}).get("task"))
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._skip_agent_selection = None
        self._given = dict.fromkeys(self.agents, 0.0)
        self._seen = {agent: self._episodes.clean(role.observation) for agent, role in session.roles.items()}
        self._turn = session.turn
        task = (session.task or {}).get("id", "")
        self.infos = {agent: {"task": task, **self._mask_of(agent)} for agent in self.agents}
        self.agent_selection = self._turn[0] if self._turn else self.agents[0]

    def observe(self, agent: str) -> str:
        return self._seen[agent]

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if self._episodes.session is None:
            raise RuntimeError("the episode is over: call reset() first")
        step = self._episodes.act(self._text_of(action), role=agent)
        truncated = self._episodes.is_last_turn() and not step.done
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self._turn = step.turn
        for other, told in {agent: step.observation, **step.observations}.items():
            self._seen[other] = self._episodes.clean(told)
        for other, reward in step.rewards.items():
            self.rewards[other] = reward or 0.0
        for other in self.agents:
            self.infos[other] = {**({"is_error": step.is_error} if other == agent else {}), **self._mask_of(other)}
        if step.done or truncated:
            for other, total in self._episodes.score_roles().items():
                # The rewards of the steps are a part of the score, not an addition to it.
                self.rewards[other] = total - self._given[other]
                self.infos[other]["score"] = total
            self.terminations = dict.fromkeys(self.agents, step.done)
            self.truncations = dict.fromkeys(self.agents, truncated)
        elif self._turn:
            self.agent_selection = self._turn[0]
        for other, reward in self.rewards.items():
            self._given[other] += reward
        self._accumulate_rewards()
        self._deads_step_first()

    def close(self) -> None:
        self._episodes.close()

    def _text_of(self, action: Any) -> str:
        chosen = action if self._choice is None else self._choice[int(action)]
        return chosen if isinstance(chosen, str) else json.dumps(chosen)

    def _mask_of(self, agent: str) -> dict[str, NDArray[np.int8]]:
        if self._choice is None:
            return {}
        if agent not in self._turn:
            return {"action_mask": np.zeros(len(self._choice), np.int8)}
        legal = self._choice if self._legal is None else self._legal(self._seen[agent])
        return {"action_mask": np.array([one in legal for one in self._choice], np.int8)}


def _roles_of(episodes: TextEpisodes, environment: str) -> list[str]:
    roles = episodes.roles()
    if roles:
        return roles
    episodes.close()
    raise ValueError(f"'{environment}' has no roles: use AEnvParallel, and divide it between agents with 'roles'")


def _reward_for(role: Role, score: Reward) -> float:
    if role.component is None:
        return score.reward
    if role.component not in score.components:
        raise ValueError(f"the score has no component '{role.component}'; it has: {', '.join(score.components) or 'none'}")
    return score.components[role.component]
