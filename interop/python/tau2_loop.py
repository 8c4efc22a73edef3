"""Plays a tau2 episode with the original SDK, as its example of training on tau2 does, and prints what it saw as one line of JSON.

Arguments: the platform's URL, the environment, its variables as JSON, and what the agent does as JSON: a list of turns
{"calls": [[tool, arguments], ...], "say": words or null}. It replaces the model, so that nothing has to be downloaded.
"""

import asyncio
import json
import logging
import sys
import warnings

warnings.simplefilter("ignore")

from aenv import Environment, setup_logging  # noqa: E402

START = "Please start working on the task."


async def episode(url, name, variables, turns):
    env = Environment(name, aenv_url=url, environment_variables=variables, ttl="10m", timeout=60, max_retries=0)
    await env.initialize()
    try:
        report = {
            "prompt": await env.call_function("tau2_get_system_prompt", {}),
            "info": await env.call_function("tau2_get_task_info", {}),
            "tools": [tool["name"].split("/")[-1] for tool in await env.list_tools()],
            "schemas": len(await env.call_function("tau2_get_available_tools", {})),
            "heard": [],
            "answers": [],
        }
        agent = iter(turns)
        for _ in range(report["info"]["max_steps"]):
            status = await env.call_function("tau2_get_status", {})
            turn = next(agent, None)
            if status["done"] or turn is None:
                break
            report["heard"].append(status["last_observation"] or START)
            for tool, arguments in turn["calls"]:
                result = await env.call_tool(tool, arguments)
                report["answers"].append([result.is_error, json.loads(result.content[0]["text"])])
            if turn["say"] is not None:
                report["said"] = await env.call_function("tau2_send_message", {"message": turn["say"]})
        status = await env.call_function("tau2_get_status", {})
        if not status["done"]:
            report["ended"] = await env.call_function("tau2_done", {})
        report["reward"] = await env.call_reward({})
        report["status"] = await env.call_function("tau2_get_status", {})
        return report
    finally:
        await env.release()


if __name__ == "__main__":
    setup_logging(logging.NullHandler())
    _, URL, NAME, VARIABLES, TURNS = sys.argv
    print(json.dumps(asyncio.run(episode(URL, NAME, json.loads(VARIABLES), json.loads(TURNS)))))
