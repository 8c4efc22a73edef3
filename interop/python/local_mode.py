"""Uses an environment through the original SDK in its local mode, and prints what it saw as one line of JSON.

DUMMY_INSTANCE_IP says where the environment is. Arguments: the parts of the report to make, and for the long call
the address of a second server, one that does not ping.
"""

import asyncio
import json
import logging
import sys
import time
import warnings

warnings.simplefilter("ignore")

from aenv import Environment, setup_logging  # noqa: E402

NAME = "twin@1.0.0"


async def attempt(awaitable):
    """What it gave, or the error it ended with."""
    try:
        return await awaitable
    except Exception as error:
        return {"raised": type(error).__name__, "message": str(error)}


async def call(env, tool, arguments, timeout=None):
    result = await attempt(env.call_tool(tool, arguments, timeout=timeout))
    return result if isinstance(result, dict) else {"content": result.content, "is_error": result.is_error}


async def shared():
    """What every environment server must do alike."""
    # The original's health check only supports localhost, so it is skipped here.
    async with Environment(NAME, skip_for_healthy=True) as env:
        return {
            "tools": await env.list_tools(),
            "object": await call(env, "get_weather", {"city": "Beijing"}),
            "text": await call(env, "greet", {"name": "Ada"}),
            "default_replaced": await call(env, "greet", {"name": "Ada", "greeting": "Hi"}),
            "shaped": await call(env, "forecast", {"city": "Rome", "days": 3}),
            "prefixed": await call(env, f"{NAME}/temperatures", {}),
            "nothing": await call(env, "nothing", {}),
            "picture": await call(env, "picture", {}),
            "error": await call(env, "fail", {"why": "no wind"}),
            "invalid": await call(env, "forecast", {"city": "Rome", "days": "many"}),
            "missing": await call(env, "greet", {}),
            "again": await call(env, "get_weather", {"city": "Rome"}),
            "functions": await env.list_functions(),
            "function": await env.call_function("get_weather_func", {"city": "Rome"}),
            "function_error": await attempt(env.call_function("explode", {"why": "boom"})),
            "function_unknown": await attempt(env.call_function("unheard_of", {})),
            "good": await env.call_reward({"city": "Beijing"}),
            "bad": await env.call_reward({"city": "Rome"}),
            "reward_error": await attempt(env.call_reward({"wrong": 1})),
        }


async def life():
    """An environment's life: healthy, used by many calls at once, released, and used again."""
    env = Environment(NAME)
    async with env:
        cities = [f"city-{n}" for n in range(16)]
        answers = await asyncio.gather(*(call(env, "get_weather", {"city": city}) for city in cities))
        report = {
            "health": await env.check_health({}),
            "info": await env.get_env_info(),
            "at_once": [json.loads(answer["content"][0]["text"])["city"] for answer in answers],
            "unknown": await call(env, "unheard_of", {}),
            "after_unknown": await call(env, "greet", {"name": "Ada"}),
        }
    report["released"] = env._instance is None
    report["reopened"] = await call(env, "greet", {"name": "Eve"})
    await env.release()
    return report


class Heard(logging.Handler):
    def __init__(self):
        super().__init__(logging.DEBUG)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


async def talk():
    """A tool that logs and reports progress: what the client's own handlers hear."""
    heard = Heard()
    client = logging.getLogger("fastmcp")
    client.setLevel(logging.DEBUG)
    client.addHandler(heard)
    client.propagate = False
    try:
        async with Environment(NAME) as env:
            result = await call(env, "talk", {})
    finally:
        client.removeHandler(heard)
    lines = [line for line in heard.lines if line.startswith(("Received ", "Progress: "))]
    return {"result": result, "heard": lines}


async def long_call(address):
    """A call longer than the silence that the client bears (60 s by default, 2 s here), with pings and without."""

    async def timed(timeout, **options):
        env = Environment(NAME, timeout=2, **options)
        started = time.monotonic()
        answer = await call(env, "slow", {"seconds": 5}, timeout=timeout)
        await env.release()
        return {"answer": answer, "seconds": time.monotonic() - started}

    with_pings, without_pings = await asyncio.gather(timed(20), timed(7, aenv_url=address))
    return {"with_pings": with_pings, "without_pings": without_pings}


async def main(parts, address):
    work = {"shared": shared, "life": life, "talk": talk, "long_call": lambda: long_call(address)}
    return {part: await work[part]() for part in parts}


if __name__ == "__main__":
    setup_logging(logging.NullHandler())
    print(json.dumps(asyncio.run(main(sys.argv[1].split(","), (sys.argv[2:] or [""])[0]))))
