"""Sends a message to an A2A agent with the newest client of Python, and prints what came back as one line of JSON.

Arguments: the base URL, the binding (JSONRPC or HTTP+JSON), whether to stream (yes or no), and the id of the message.
"""

import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as types


async def main(base, binding, stream, message_id):
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(httpx_client=http, base_url=base).get_agent_card()
        config = ClientConfig(streaming=stream == "yes", supported_protocol_bindings=[binding], httpx_client=http)
        client = ClientFactory(config).create(card)
        part = types.Part(text="hello")
        message = types.Message(message_id=message_id, role=types.Role.ROLE_USER, parts=[part])
        kinds = []
        task = ""
        async for event in client.send_message(types.SendMessageRequest(message=message)):
            kinds.append(event.WhichOneof("payload"))
            task = event.task.id or event.status_update.task_id or task
        report = {"card": card.name, "events": kinds}
        if task != "":
            found = await client.get_task(types.GetTaskRequest(id=task))
            listed = await client.list_tasks(types.ListTasksRequest(page_size=5))
            texts = [part.text for artifact in found.artifacts for part in artifact.parts]
            report |= {"state": types.TaskState.Name(found.status.state), "texts": texts, "listed": task in [one.id for one in listed.tasks]}
            try:
                await client.cancel_task(types.CancelTaskRequest(id=task))
            except Exception as error:
                report["refused"] = type(error).__name__
        print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
