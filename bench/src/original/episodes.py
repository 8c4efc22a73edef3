"""Plays episodes with the original SDK: COUNT episodes of CALLS tool calls and a reward, LANES at the same time.

DUMMY_INSTANCE_IP says where the original's server is. Prints the seconds that the episodes took, without the start of this process.
"""

import asyncio
import logging
import sys
import time
import warnings

warnings.simplefilter("ignore")

from aenv import Environment  # noqa: E402

logging.disable(logging.CRITICAL)


async def play(calls):
    async with Environment("echo@1.0.0", skip_for_healthy=True) as env:
        await env.list_tools()
        for n in range(calls):
            result = await env.call_tool("echo", {"text": f"call {n}"})
            assert result.content[0]["text"] == f"call {n}", result
        assert (await env.call_reward({"echoes": calls}))["reward"] == calls


async def main(count, calls, lanes):
    left = iter(range(count))

    async def lane():
        for _ in left:
            await play(calls)

    await play(calls)
    started = time.monotonic()
    await asyncio.gather(*(lane() for _ in range(lanes)))
    print(time.monotonic() - started)


asyncio.run(main(*map(int, sys.argv[1:])))
