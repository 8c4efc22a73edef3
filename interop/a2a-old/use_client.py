"""Sends a message to an A2A agent with the last client of Python for version 0.3, and prints what came back as one line of JSON.

Arguments: the base URL, whether to stream (yes or no), and the id of the message.
"""

import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import Message, Part, Role, TaskQueryParams, TextPart


async def main(base, stream, message_id):
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(httpx_client=http, base_url=base).get_agent_card()
        client = ClientFactory(ClientConfig(streaming=stream == "yes", httpx_client=http)).create(card)
        message = Message(message_id=message_id, role=Role.user, parts=[Part(root=TextPart(text="hello"))])
        kinds = []
        task = None
        async for event in client.send_message(message):
            if isinstance(event, Message):
                kinds.append("message")
                continue
            task, update = event
            kinds.append("task" if update is None else update.kind)
        report = {"card": card.name, "events": kinds}
        if task is not None:
            found = await client.get_task(TaskQueryParams(id=task.id))
            texts = [part.root.text for artifact in found.artifacts or [] for part in artifact.parts]
            report |= {"state": found.status.state.value, "texts": texts}
        print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
