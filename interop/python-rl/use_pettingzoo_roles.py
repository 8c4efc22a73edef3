"""The roles of an environment as agents of PettingZoo: use_pettingzoo_roles.py URL KUHN SHAPES ECHO. Prints one JSON report."""

import json
import sys
import warnings

import numpy as np
from gymnasium.spaces import MultiDiscrete
from pettingzoo.test import api_test, parallel_api_test

from aenv_client import Client, reward_of
from aenv_client.pettingzoo import AEnvAec, AEnvParallel, Role

URL, KUHN, SHAPES, ECHO = sys.argv[1:]
PASS = {"name": "act", "arguments": {"move": "p"}}
BET = {"name": "act", "arguments": {"move": "b"}}


class Encoded(AEnvAec):
    """The API test for AEC takes arrays only: an observation is the counts of its characters."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.observation_spaces = {agent: MultiDiscrete([1_000] * 128) for agent in self.possible_agents}

    def observe(self, agent):
        return np.bincount(np.frombuffer(super().observe(agent).encode("ascii"), np.uint8), minlength=128).astype(np.int64)


def checked():
    """The API tests of PettingZoo: with texts, most of which are no call, and with a choice of calls."""
    with warnings.catch_warnings():
        # It wants arrays as observations, and render().
        warnings.simplefilter("ignore")
        for choice in ({}, {"actions": [PASS, BET]}):
            env = Encoded(KUHN, url=URL, max_length=60, **choice)
            sys.stdout = sys.stderr
            api_test(env, num_cycles=12)
            sys.stdout = sys.__stdout__
            env.close()
    env = AEnvParallel(SHAPES, url=URL, max_length=60)
    parallel_api_test(env, num_cycles=4)
    env.close()


def hand():
    """One hand: the first passes, the second bets, the first passes."""
    env = AEnvAec(KUHN, url=URL, actions=[PASS, BET], legal=lambda seen: [PASS] if '"p"' in seen else [PASS, BET])
    env.reset(seed=3)
    log = []
    for action in (0, 1, 0):
        observation, reward, termination, truncation, info = env.last()
        log.append([env.agent_selection, observation, reward, termination, truncation, info["action_mask"].tolist()])
        env.step(action)
    ends = {}
    while env.agents:
        observation, reward, termination, truncation, info = env.last()
        ends[env.agent_selection] = [reward, termination, truncation, info["score"]]
        env.step(None)
    env.close()
    return {"log": log, "ends": ends}


def total(hands):
    """The rewards of all agents in so many hands."""
    env = AEnvAec(KUHN, url=URL, actions=[PASS, BET])
    sums = dict.fromkeys(env.possible_agents, 0.0)
    for seed in range(hands):
        env.reset(seed=seed)
        for agent in env.agent_iter():
            observation, reward, termination, truncation, info = env.last()
            sums[agent] += reward
            env.step(None if termination or truncation else 1 if "K" in observation else 0)
    env.close()
    return sums


def at_once():
    env = AEnvParallel(SHAPES, url=URL)
    show = {shape: json.dumps({"name": "show", "arguments": {"shape": shape}}) for shape in "rps"}
    begun = env.reset(seed=1)
    first = env.step({"left": show["r"], "right": show["s"]})
    last = [env.step({"left": show["r"], "right": show["r"]}) for _ in range(2)][1]
    env.close()
    return {"agents": env.possible_agents, "infos": begun[1], "first": [first[0], first[1]], "last": last[1:4]}


def refused():
    messages = []
    for make in (lambda: AEnvAec(ECHO, url=URL), lambda: AEnvParallel(KUHN, {"a": Role()}, url=URL).reset()):
        try:
            make()
        except ValueError as error:
            messages.append(str(error))
    return messages


def played():
    """A rollout with players, through the client."""
    oracle = {"agent": {"kind": "oracle"}}
    with Client(URL) as client:
        players = {"first": oracle, "second": {**oracle, "trainable": True}}
        result = client.rollouts.play({"id": "one", "environment": KUHN, "players": players})
        return {name: [role.agent, role.trainable, reward_of(role.outcome)] for name, role in result.roles.items()}


checked()
print(json.dumps({"hand": hand(), "total": total(40), "at_once": at_once(), "refused": refused(), "played": played()}))
