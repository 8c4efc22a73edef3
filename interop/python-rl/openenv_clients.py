"""Uses an environment through the published clients of OpenEnv, and prints what they saw as one line of JSON.

Arguments: the base URL of an echo environment, without and with a token in its path; the token; the base URL of an environment
whose tools can end their sandbox.
"""

import asyncio
import json
import sys

from openenv import AutoEnv
from openenv.cli._validation import validate_running_environment
from openenv.core import GenericEnvClient
from openenv.core.env_server.mcp_types import CallToolAction, ListToolsAction
from openenv.core.mcp_client import MCPToolClient

URL, KEYED_URL, TOKEN, PROBE_URL = sys.argv[1:5]
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


async def attempt(coroutine):
    try:
        return await coroutine
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def call(name, /, **arguments):
    return {"type": "call_tool", "tool_name": name, "arguments": arguments}


async def generic():
    async with GenericEnvClient(base_url=URL, headers=HEADERS) as env:
        first = await env.reset(task_id="be-brief", seed=1)
        echoed = await env.step(call("echo", text="brevity"))
        wrong = await env.step(call("eco"))
        last = await env.step(call("submit"))
        state = await env.state()
        again = await env.reset(seed=1)
        refused = await attempt(env.reset(seed=-1))
        after = await env.state()
    return {
        "prompt": first.observation["prompt"],
        "first": [first.reward, first.done],
        "echoed": [echoed.observation["result"]["data"], echoed.reward, echoed.done],
        "wrong": wrong.observation["error"]["error_type"],
        "last": [last.reward, last.done, last.metadata["rewards"]],
        "state": [state["step_count"], state["task_id"], state["reward"]],
        "again": [again.observation["task_id"], again.reward, again.done],
        "refused": refused,
        "after": after["step_count"],
    }


def in_sync():
    """The client that AutoEnv chooses. The token is in the URL's path, for clients that cannot set headers; a slash is at its end."""
    env = AutoEnv.from_env("echo", base_url=f"{KEYED_URL}/", skip_install=True).sync()
    with env:
        env.reset(split="test", index=0)
        env.step(call("remember", name="password"))
        result = env.step(call("echo", text="sesame"))
        result = env.step(call("submit"))
    return [result.reward, result.done]


async def tools():
    async with MCPToolClient(base_url=URL, headers=HEADERS) as env:
        first = await env.reset(task_id="greet")
        listed = await env.list_tools()
        echoed = await env.call_tool("echo", text="hello")
        wrong = await attempt(env.call_tool("echo", text=5))
        stepped = await env.step(CallToolAction(tool_name="echo", arguments={"text": "more"}))
        tools_again = await env.step(ListToolsAction())
        state = await env.state()
        submitted = await env.call_tool("submit")
    return {
        "prompt": first.observation.metadata["prompt"],
        "tools": [tool.name for tool in listed],
        "echoed": echoed,
        "wrong": wrong,
        "stepped": stepped.observation.result["data"],
        "listed": len(tools_again.observation.tools),
        "steps": state.step_count,
        "submitted": submitted,
    }


async def lost():
    """A sandbox that dies: an error, never a reward."""
    async with GenericEnvClient(base_url=PROBE_URL, headers=HEADERS) as env:
        await env.reset()
        crashed = await attempt(env.step(call("crash")))
        submitted = await attempt(env.step(call("submit")))
        await env.reset()
        counted = await env.step(call("count"))
    return {"crashed": crashed, "submitted": submitted, "counted": counted.observation["result"]["data"]}


async def parallel(count):
    async def play(at):
        async with GenericEnvClient(base_url=URL, headers=HEADERS) as env:
            await env.reset(task_id="greet")
            await env.step(call("echo", text="hello" if at % 2 == 0 else "goodbye"))
            return (await env.step(call("submit"))).reward

    return sum(await asyncio.gather(*(play(at) for at in range(count))))


async def main():
    validated = validate_running_environment(KEYED_URL)
    return {
        "generic": await generic(),
        "tools": await tools(),
        "lost": await lost(),
        "parallel": await parallel(16),
        "validated": [validated["passed"], validated["mode"], validated["standard_profile"]],
    }


if __name__ == "__main__":
    report = asyncio.run(main())
    print(json.dumps({**report, "in_sync": in_sync()}))
