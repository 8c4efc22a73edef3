"""The interactive example of the original for mini-terminal: each line of standard input is a command, until 'exit' or 'quit'.

As in the example, the platform is found by AENV_SYSTEM_URL. Instead of the results themselves, one line of JSON is printed for each.
"""

import asyncio
import json
import logging
import warnings

warnings.simplefilter("ignore")

from aenv import Environment, setup_logging  # noqa: E402

NAME = "mini-terminal@1.0.1"


async def main():
    mini_terminal = Environment(NAME)
    tools = await mini_terminal.list_tools()
    print(json.dumps(tools))
    while True:
        line = input().strip()
        if line.lower() in ("exit", "quit"):
            break
        result = await mini_terminal.call_tool(f"{NAME}/execute_command", {"command": line, "timeout": 5})
        print(json.dumps({"is_error": result.is_error, "content": result.content}))
    await mini_terminal.release()


if __name__ == "__main__":
    setup_logging(logging.NullHandler())
    asyncio.run(main())
