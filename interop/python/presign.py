"""Reaches a port inside a sandbox through the original SDK's presign_url, and prints what it saw as one line of JSON.

Arguments: the platform's URL, the port that the environment's config names, and one that it does not name.
"""

import asyncio
import json
import logging
import sys
import warnings

warnings.simplefilter("ignore")

import httpx  # noqa: E402
import websockets  # noqa: E402
from aenv import Environment, setup_logging  # noqa: E402
from local_mode import attempt, call  # noqa: E402

URL, PORT, OTHER = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def environment(**options):
    return Environment("window@1.0.0", aenv_url=URL, max_retries=0, **options)


async def without_data_plane():
    """Only the life cycle and presigned links, as for a sandbox that runs any program."""
    async with environment(enable_data_plane=False, environment_variables={"LISTEN": str(PORT)}) as env:
        url = await env.presign_url(PORT, expiration_time_in_minutes=1)
        async with httpx.AsyncClient(follow_redirects=True) as client:
            posted = (await client.post(f"{url}/healthz?a=1", content="hello")).json()
            redirected = (await client.get(f"{url}/away")).json()
        async with websockets.connect(f"{url.replace('http', 'ws', 1)}/chat", subprotocols=["chat"]) as socket:
            await socket.send("hello")
            echoed = [await socket.recv()]
            await socket.send(bytes(range(256)) * 1_000)
            echoed.append(await socket.recv() == bytes(range(256)) * 1_000)
            echoed.append(socket.subprotocol)
        refused = await attempt(env.presign_url(OTHER))
        invalid = await attempt(env.presign_url(0))
        too_short = await attempt(env.presign_url(PORT, expiration_time_in_minutes=-1))
        tool = await attempt(env.call_tool("listen", {"port": OTHER}))
    async with httpx.AsyncClient() as client:
        after = (await client.get(url)).status_code
    return {
        "url": url,
        "posted": [posted[key] for key in ("method", "url", "host", "body")],
        "redirected": redirected["url"],
        "echoed": echoed,
        "refused": refused,
        "invalid": invalid,
        "too_short": too_short,
        "tool": tool,
        "after": after,
    }


async def before_it_listens():
    async with environment() as env:
        url = await env.presign_url(PORT)
        async with httpx.AsyncClient() as client:
            before = (await client.get(url)).status_code
            listening = await call(env, "listen", {"port": PORT})
            after = (await client.get(url)).status_code
    return {"before": before, "listening": listening["is_error"], "after": after}


async def main():
    return {"without_data_plane": await without_data_plane(), "before_it_listens": await before_it_listens()}


if __name__ == "__main__":
    setup_logging(logging.NullHandler())
    print(json.dumps(asyncio.run(main())))
