"""Uses the sandbox of an instance, synchronous or asynchronous: use_sandbox.py URL sync|async. Prints one JSON report."""

import asyncio
import inspect
import json
import sys
from dataclasses import asdict

from aenv_client import AsyncClient, Client, PlatformError

URL, KIND = sys.argv[1:]


async def of(value):
    """The value of a call of either client."""
    return await value if inspect.isawaitable(value) else value


async def main():
    client = Client(URL) if KIND == "sync" else AsyncClient(URL)
    instance = await of(client.instances.create("tally@1.0.0"))
    sandbox = instance.sandbox
    report = {}
    try:
        report["command"] = asdict(await of(sandbox.exec("cat; echo $A; exit 3", stdin="in ", env={"A": "a"}, timeout=30)))
        report["list"] = (await of(sandbox.exec(["printf", "%s", "$A"]))).stdout
        report["timeout"] = (await of(sandbox.exec("sleep 600", timeout=0.2))).timed_out
        await of(sandbox.files.write("deep/a.txt", "grün", mode=0o600))
        await of(sandbox.files.write("deep/a.txt", b"!", append=True))
        report["text"] = await of(sandbox.files.read_text("deep/a.txt"))
        report["mode"] = (await of(sandbox.files.stat("deep/a.txt")))["mode"]
        await of(sandbox.files.rename("deep/a.txt", "deep/b.txt"))
        await of(sandbox.files.mkdir("deep/er"))
        report["files"] = [one["path"] for one in await of(sandbox.files.list("deep"))]
        await of(sandbox.files.remove("deep", recursive=True))
        try:
            await of(sandbox.files.read("deep/b.txt"))
        except PlatformError as error:
            report["missing"] = error.code
    finally:
        await of(instance.delete())
        await of(client.close())
    print(json.dumps(report))


asyncio.run(main())
