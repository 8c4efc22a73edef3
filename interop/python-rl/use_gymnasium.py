"""Uses an environment through Gymnasium: use_gymnasium.py URL PART. Prints one JSON report."""

import json
import sys
import warnings

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from aenv_client import Unscored
from aenv_client.gymnasium import Menu

URL, PART = sys.argv[1:]
ECHO = "echo-shared@1.0.0"
SAY = [json.dumps({"name": "echo", "arguments": {"text": word}}) for word in ("hello", "brevity", "sesame")]


def make(environment=ECHO, **options):
    return gymnasium.make("AEnv-v0", environment=environment, url=URL, **options)


def unscored(call):
    try:
        return call()
    except Unscored as error:
        return {"cause": error.cause, "stage": error.stage, "retryable": error.retryable}


def checked():
    """Gymnasium's own checker, with every warning as an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = make(max_length=200)
        check_env(env.unwrapped)
        env.close()
        menu = Menu(make(), ["done", *SAY])
        menu.reset(seed=1)
        menu.step(1)
        menu.close()
    return gymnasium.__version__


def episodes():
    env = make(max_turns=2)
    report = {"begun": env.reset(seed=3, options={"task": "greet"}), "tools": [tool["name"] for tool in env.unwrapped.tools]}
    report["scored"] = [env.step(SAY[0]), env.step("I have said it.")]
    env.reset(options={"task": "greet"})
    report["truncated"] = [env.step(SAY[1])[1:4], env.step(SAY[0])[1:4]]
    report["sums"] = [sum(step[1] for step in report["scored"]), sum(step[0] for step in report["truncated"])]
    env.reset(options={"task": "greet"})
    report["wrong"] = [env.step('{"name": "sing"}')[4]]
    drawn = lambda seed: [env.reset(seed=seed)[1]["task"]] + [env.reset()[1]["task"] for _ in range(5)]
    report["drawn_equal"] = drawn(5) == drawn(5)
    env.close()
    train = make(split="test")
    report["split"] = [train.reset(seed=seed)[1]["task"] for seed in range(3)]
    train.close()
    return report


def failures():
    env = make("probe@1.0.0", max_turns=2)
    env.reset(seed=1)
    report = {"crash": unscored(lambda: env.step('{"name": "crash"}'))}
    try:
        env.step("more")
    except gymnasium.error.ResetNeeded:
        report["needs_reset"] = True
    env.reset(seed=1)
    report["afterwards"] = [env.step('{"name": "count"}')[1], env.step("done")[1]]
    env.close()
    broken = make("probe@1.0.0", tasks=["one"], variables={"SETUP": "fail"})
    report["setup"] = unscored(lambda: broken.reset(seed=1))
    broken.close()
    return report


def vectors():
    report = {}
    for name, open_vector in {"sync": SyncVectorEnv, "async": lambda envs: AsyncVectorEnv(envs, shared_memory=False)}.items():
        envs = open_vector([lambda task=task: make(tasks=[task]) for task in ("greet", "be-brief")])
        observations, infos = envs.reset(seed=1)
        first = envs.step((SAY[0], SAY[0]))[1]
        _, rewards, terminated, _, _ = envs.step(("done", "done"))
        report[name] = [list(observations), list(infos["task"]), (first + rewards).round(6).tolist(), terminated.tolist()]
        envs.close()
    return report


def learner():
    """
    REINFORCE with a linear policy over the words of the observation. The tasks differ only in the word to echo, so a policy that does
    not read the observation cannot solve more than one of them.
    """
    random = np.random.default_rng(0)
    env = Menu(make(tasks=["greet", "be-brief"], max_turns=1), SAY)
    env.reset(seed=0)
    weights = np.zeros((env.observation_space.shape[0], env.action_space.n))
    baseline = 0.0

    def play(explores):
        observation, _ = env.reset()
        logits = observation @ weights
        chances = np.exp(logits - logits.max())
        chances /= chances.sum()
        action = int(random.choice(len(chances), p=chances)) if explores else int(chances.argmax())
        return observation, chances, action, env.step(action)[1]

    first = [play(True)[3] for _ in range(20)]
    for _ in range(60):
        observation, chances, action, reward = play(True)
        gradient = -chances
        gradient[action] += 1.0
        weights += 2.0 * (reward - baseline) * np.outer(observation, gradient)
        baseline += 0.1 * (reward - baseline)
    last = [play(False)[3] for _ in range(20)]
    env.close()
    return {"random": float(np.mean(first)), "learned": float(np.mean(last))}


print(json.dumps(globals()[PART](), default=lambda value: value.tolist() if hasattr(value, "tolist") else str(value)))
