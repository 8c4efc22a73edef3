"""A client of the original's terminalbench: it creates an instance with a datasource, types into the terminal and has the task graded.

The platform is found by AENV_SYSTEM_URL. The arguments are the task and the lines to type. Prints the last screen and what the reward returns.
"""

import asyncio
import json
import logging
import sys
import warnings

warnings.simplefilter("ignore")

from aenv import Environment, setup_logging  # noqa: E402

NAME = "terminal@0.1.0"


async def main(task, *lines):
    terminal = Environment(NAME, datasource=f"terminalbench/{task}", timeout=120)
    try:
        for line in lines:
            result = await terminal.call_tool(f"{NAME}/keystrokes", {"keystrokes": line, "append_enter": True, "wait_time_sec": 30.0})
        reward = await terminal.call_reward({"task_name": task})
        print(json.dumps({"content": result.content, "reward": reward}))
    finally:
        await terminal.release()


if __name__ == "__main__":
    setup_logging(logging.NullHandler())
    asyncio.run(main(*sys.argv[1:]))
