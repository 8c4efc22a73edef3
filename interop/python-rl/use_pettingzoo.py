"""Two agents play an environment through PettingZoo: use_pettingzoo.py URL. Prints one JSON report."""

import json
import sys
import warnings

from pettingzoo.test import parallel_api_test

from aenv_client import Unscored
from aenv_client.pettingzoo import AEnvParallel, Role

URL = sys.argv[1]
ROLES = {"speaker": Role(tools=["echo"], component="said_it"), "keeper": Role(tools=["remember"])}
SAY = json.dumps({"name": "echo", "arguments": {"text": "hello"}})
KEEP = json.dumps({"name": "remember", "arguments": {"name": "color", "text": "blue"}})


def checked():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Random texts; most of them end an episode at once.
        env = AEnvParallel("echo-shared@1.0.0", ROLES, url=URL, max_length=20)
        parallel_api_test(env, num_cycles=5)
        env.close()


def played():
    env = AEnvParallel("echo-shared@1.0.0", ROLES, url=URL, max_turns=2)
    begun = env.reset(seed=1, options={"task": "greet"})
    first = env.step({"speaker": KEEP, "keeper": KEEP})
    last = env.step({"speaker": SAY, "keeper": ""})
    sums = {agent: first[1][agent] + last[1][agent] for agent in ROLES}
    agents = env.agents
    env.close()
    return {"begun": begun, "first": [first[0], first[4]], "last": [last[0], last[2], last[3]], "sums": sums, "agents": agents}


def failed():
    env = AEnvParallel("probe@1.0.0", {"one": Role(), "other": Role()}, url=URL)
    env.reset(seed=1)
    try:
        env.step({"one": '{"name": "count"}', "other": '{"name": "crash"}'})
    except Unscored as error:
        return [error.cause, error.stage]
    finally:
        env.close()


checked()
print(json.dumps({"played": played(), "failed": failed()}))
