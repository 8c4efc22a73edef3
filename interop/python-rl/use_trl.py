"""Uses the class that TRL's environment_factory gets, without TRL: use_trl.py URL. Prints one JSON report."""

import inspect
import json
import sys

from aenv_client import NotFound
from aenv_client.trl import environment_class

URL = sys.argv[1]


def shape(kind):
    functions = inspect.getmembers(kind, predicate=inspect.isfunction)
    public = {name: one for name, one in functions if not name.startswith("_")}
    return {name: str(inspect.signature(one)) for name, one in public.items()}


def played(kind):
    env = kind()
    begun = env.reset(task="greet", prompt=[{"role": "user", "content": ""}])
    answers = [env.echo(text="hello"), env.remember(name="shape")]
    first = env.get_reward()
    env.reset(task="be-brief", seed=3)
    env.echo("brevity", times=None)
    return {"begun": begun, "answers": answers, "rewards": [first, env.get_reward()], "again": env.get_reward()}


def failed(kind):
    env = kind()
    env.reset(task="one")
    lost = [env.count(), env.crash(), env.count(), env.get_reward()]
    env.reset(task="one")
    env.count()
    return {"lost": lost, "afterwards": env.get_reward()}


def refused(kind):
    try:
        kind().reset(task="none")
    except NotFound as error:
        return error.code


echo = environment_class("echo-shared@1.0.0", url=URL)
probe = environment_class("probe@1.0.0", url=URL)
report = {"name": echo.__name__, "shape": shape(echo), "doc": echo.echo.__doc__, "played": played(echo), "failed": failed(probe)}
print(json.dumps({**report, "refused": refused(echo)}))
