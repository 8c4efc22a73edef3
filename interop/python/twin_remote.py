"""Uses the environment of twin.py on a platform through the original SDK, and prints what it saw as one line of JSON.

Arguments: the platform's URL, and the environment.
"""

import asyncio
import json
import logging
import sys
import warnings

warnings.simplefilter("ignore")

from aenv import Environment, setup_logging  # noqa: E402
from local_mode import call  # noqa: E402


async def use(url, name):
    async with Environment(name, aenv_url=url, max_retries=0) as env:
        return {
            "tools": [tool["name"] for tool in await env.list_tools()],
            "object": await call(env, "get_weather", {"city": "Beijing"}),
            "error": await call(env, "fail", {"why": "no wind"}),
            "functions": [one["name"] for one in (await env.list_functions())["functions"]],
            "function": await env.call_function("get_weather_func", {"city": "Rome"}),
            "rewards": [await env.call_reward({"city": city}) for city in ("Beijing", "Rome")],
            "health": await env.check_health({}),
        }


if __name__ == "__main__":
    setup_logging(logging.NullHandler())
    print(json.dumps(asyncio.run(use(sys.argv[1], sys.argv[2]))))
