"""The example of the original's README for an agent that is an environment, with its result as one line of JSON."""

import asyncio
import json
import logging
import warnings

warnings.simplefilter("ignore")

from aenv import Environment, setup_logging  # noqa: E402


async def main():
    agent_b = Environment("agent-b@1.0.0")
    response = await agent_b.call_tool("chat", {"message": "Hello!"})
    print(json.dumps({"is_error": response.is_error, "content": response.content}))
    await agent_b.release()


if __name__ == "__main__":
    setup_logging(logging.NullHandler())
    asyncio.run(main())
