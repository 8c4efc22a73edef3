"""Uses the client, synchronous or asynchronous: use_client.py URL sync|async PART [ARGUMENT]. Prints one JSON report."""

import asyncio
import copy
import inspect
import json
import pickle
import sys
from dataclasses import asdict

import httpx

from aenv_client import AsyncClient, Client, NotFound, PlatformError, reward_of, RolloutResult, Token, Unscored

URL, KIND, PART, *REST = sys.argv[1:]
ECHO = "echo-shared@1.0.0"
PROBE = "probe@1.0.0"


async def of(value):
    """The value of a call of either client."""
    return await value if inspect.isawaitable(value) else value


async def items(values):
    """The items of an iterator of either client."""
    return [one async for one in values] if hasattr(values, "__aiter__") else list(values)


async def error_of(call):
    try:
        return await of(call())
    except (PlatformError, Unscored) as error:
        return {"raised": type(error).__name__, **error.__dict__}


async def methods(client):
    report = {}
    report["environments"] = [one["name"] for one in await of(client.environments.list())]
    report["environment"] = (await of(client.environments.get("echo-shared")))["version"]
    report["versions"] = [one["version"] for one in await of(client.environments.versions("echo-shared"))]
    report["whoami"] = await of(client.tokens.whoami())
    instance = await of(client.instances.create(ECHO, task="greet", seed=4, labels={"kind": KIND}))
    report["tools"] = [tool["name"] for tool in await of(instance.tools())]
    report["tasks"] = [task["id"] for task in await of(instance.tasks())]
    report["test_tasks"] = [task["id"] for task in await of(instance.tasks(split="test"))]
    report["reset"] = await of(instance.reset(task="be-brief", seed=5))
    echoed = await of(instance.call_tool("echo", {"text": "brevity"}))
    report["echoed"] = [echoed.text, echoed.is_error]
    report["prefixed"] = (await of(instance.call_tool(f"{ECHO}/echo", {"text": "ho", "times": 2}))).text
    report["failed"] = [(one := await of(instance.call_tool("remember", {"name": "shape"}))).text, one.is_error]
    report["object"] = (await of(instance.call_tool("remember", {"name": "color", "text": "blue"}))).json()
    report["tool_unknown"] = await error_of(lambda: instance.call_tool("sing"))
    report["functions"] = [one["name"] for one in await of(instance.functions())]
    report["function"] = await of(instance.call_function("transcript"))
    report["function_unknown"] = await error_of(lambda: instance.call_function("sing"))
    report["score"] = asdict(await of(instance.score()))
    report["score_with_arguments"] = (await of(instance.score({"calls": 2}))).reward
    report["score_refused"] = await error_of(lambda: instance.score({"calls": 0}))
    report["health"] = await of(instance.health())
    report["prompt"] = await of(instance.prompt())
    report["status"] = await of(instance.status())
    snapshot = await of(instance.snapshot())
    digest = await of(instance.digest())
    copies = await of(instance.fork(2))
    await of(copies[0].call_tool("remember", {"name": "color", "text": "red"}))
    report["forks"] = [(await of(one.call_tool("remember", {"name": "color"}))).json()["text"] for one in copies]
    for one in copies:
        await of(one.delete())
    await of(instance.call_tool("echo", {"text": "more"}))
    report["changed"] = await of(instance.digest()) != digest
    await of(instance.restore(snapshot))
    report["restored"] = await of(instance.digest()) == digest
    other = await of(client.instances.create(ECHO, snapshot=snapshot))
    report["from_snapshot"] = await of(other.digest()) == digest
    await of(other.delete())
    name = f"stored-{KIND}"
    stored = await of(instance.store(name, include_secrets=True))
    report["stored"] = [stored["fidelity"], (await of(client.snapshots.get(name)))["id"] == stored["id"]]
    report["snapshots"] = [one["name"] == name for one in await items(client.snapshots.list()) if one["id"] == stored["id"]]
    other = await of(client.instances.create(ECHO, snapshot=name))
    report["from_stored"] = await of(other.digest()) == digest
    report["started_from"] = other.record["started_from"]["id"] == stored["id"]
    await of(other.delete())
    await of(client.snapshots.delete(name))
    await of(client.snapshots.delete(name))
    report["snapshot_deleted"] = await error_of(lambda: client.snapshots.get(name))
    await of(instance.renew("2h"))
    report["ttl"] = instance.record["ttl"]
    labelled = [one for one in await items(client.instances.list(status="Running")) if one["labels"].get("kind") == KIND]
    report["running"] = [one["id"] == instance.id for one in labelled]
    report["again"] = (await of((await of(client.instances.get(instance.id))).health()))["status"]
    async with httpx.AsyncClient() as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        headers = {"accept": "application/json, text/event-stream"}
        report["agent_url"] = (await http.post(instance.agent_url, json=body, headers=headers)).status_code
    await of(instance.delete())
    await of(instance.delete())
    report["deleted"] = await error_of(lambda: client.instances.get("echo-none"))
    return report


async def records(client):
    """Fields as attributes and as keys, and the texts of `repr`."""
    environment = await of(client.environments.get(ECHO))
    instance = await of(client.instances.create(ECHO, task="greet", seed=4))
    tool, task = (await of(instance.tools()))[0], (await of(instance.tasks()))[0]
    result = await of(instance.call_tool("echo", {"text": "x" * 200}))
    listed = [one for one in await items(client.instances.list()) if one["id"] == instance.id][0]
    status = await of(instance.status())
    session = await of(client.sessions.create(ECHO, "greet"))
    report = {
        "status": [environment.status, environment["status"], (await of(client.environments.versions("echo-shared")))[0].status],
        "key": environment["name"] == environment.name == (await of(client.environments.list(name="echo-shared")))[0].name,
        "mapping": [json.loads(json.dumps(environment)) == dict(environment), isinstance(environment, dict), pickle.loads(pickle.dumps(listed)) == listed],
        "camel": tool.input_schema == tool["inputSchema"],
        "left_out": task.prompt,
        "done": status.done,
        "record": [instance.record.status, listed.environment, (await of(instance.reset())).task.id],
        "reprs": [repr(one) for one in (environment, task, tool, status, result)],
        "handles": [repr(one).replace(one.id, "ID") for one in (instance, session)] + [repr(client).replace(URL, "URL"), repr(client.environments)],
        "listed": repr(listed).replace(listed.id, "ID"),
    }
    try:
        task.instrution
    except AttributeError as error:
        report["unknown"] = str(error)
    try:
        task.split = "test"
    except AttributeError as error:
        report["read_only"] = str(error)
    await of(session.close())
    await of(instance.delete())
    made = Token({"id": "1", "owner": "ada", "roles": ["trainer"], "token": "sesame"})
    report["secret"] = ["sesame" in repr(made), made.token]
    played = RolloutResult({"id": "one", "outcome": {"kind": "scored", "reward": 1}, "num_turns": 2, "turns": [{"text": "x" * 5000}]})
    report["rollout"] = [repr(played), played.outcome.reward, copy.deepcopy(played).outcome.reward]
    report["error"] = repr(NotFound("no such instance", code="instance.not_found"))
    return report


async def errors(client):
    report = {}
    report["environment"] = await error_of(lambda: client.instances.create("nothing@1.0.0"))
    report["setup"] = await error_of(lambda: client.instances.create(PROBE, variables={"SETUP": "fail"}))
    report["task"] = await error_of(lambda: client.instances.create(ECHO, task="none"))
    instance = await of(client.instances.create(PROBE))
    report["no_tool"] = await error_of(lambda: instance.call_tool("sing"))
    report["slow"] = await error_of(lambda: instance.call_tool("wait", {"ms": 60_000}, timeout=0.5))
    report["crash"] = await error_of(lambda: instance.call_tool("crash"))
    report["score"] = await error_of(lambda: instance.score())
    await of(instance.delete())
    late = await of(client.instances.create(PROBE))
    report["late_crash"] = await error_of(lambda: late.call_tool("crash", {"afterMs": 1_200}))
    await of(late.delete())
    nobody = AsyncClient("http://127.0.0.1:9", retries=0) if KIND == "async" else Client("http://127.0.0.1:9", retries=0)
    report["unreachable"] = await error_of(lambda: nobody.environments.list())
    await of(nobody.close())
    return report


async def port(client):
    """The link to a port of the sandbox."""
    instance = await of(client.instances.create("window@1.0.0", variables={"LISTEN": REST[0]}))
    url = await of(instance.port_url(int(REST[0]), minutes=1))
    async with httpx.AsyncClient() as http:
        answer = await http.post(f"{url}/healthz?a=1", content="hello")
    await of(instance.delete())
    return {"url": url, "status": answer.status_code, "body": [answer.json()[key] for key in ("method", "url", "host", "body")]}


async def access(client):
    """What an instance may connect to, and a secret of its owner."""
    instance = await of(client.instances.create(PROBE, egress="none", secrets={"API_KEY": "my-key"}))
    value = (await of(instance.call_tool("variable", {"name": "API_KEY"}))).text
    await of(instance.delete())
    wide = await error_of(lambda: client.instances.create(PROBE, egress={"allow": ["example.com:443"]}))
    return {"value": value, "warnings": instance.record["warnings"], "wide": wide}


async def many(client):
    """As many instances at once as a small batch has."""

    async def one(at):
        async with await client.instances.create(ECHO, task="greet") as instance:
            return (await instance.call_tool("echo", {"text": f"{at}"})).text

    return await asyncio.gather(*(one(at) for at in range(16)))


async def rollouts(client):
    base_url = REST[0]
    model = {"base_url": base_url, "api_key": "sk-quiet", "name": "scripted", "tokens": "trainer"}
    make = lambda at: {"id": f"{KIND}-{at}", "environment": ECHO, "task": {"id": "greet"}, "model": model, "metadata": {"at": at}}
    report = {}
    streamed = await items(client.rollouts.stream([make(at) for at in range(3)]))
    report["streamed"] = sorted([one["id"], reward_of(one["outcome"])] for one in streamed)
    report["fields"] = sorted(await of(client.rollouts.play(make(0), fields="num_turns")))
    report["again"] = reward_of((await of(client.rollouts.play(make(0))))["outcome"])
    report["other_body"] = await error_of(lambda: client.rollouts.play({**make(0), "metadata": {}}))
    report["accepted"] = await of(client.rollouts.submit([make(7)]))
    report["waited"] = reward_of((await of(client.rollouts.result(f"{KIND}-7")))["outcome"])
    unreachable = {**make(8), "model": {**model, "base_url": "http://127.0.0.1:9/v1"}, "retries": 0}
    result = await of(client.rollouts.play(unreachable))
    report["unscored"] = await error_of(lambda: reward_of(result["outcome"]))
    slow = {**make(9), "model": {**model, "name": "silent"}}
    await of(client.rollouts.submit([slow]))
    report["running"] = "outcome" in await of(client.rollouts.get(f"{KIND}-9"))
    await of(client.rollouts.cancel(f"{KIND}-9"))
    await of(client.rollouts.cancel(f"{KIND}-9"))
    report["cancelled"] = (await of(client.rollouts.result(f"{KIND}-9")))["outcome"]["cause"]
    report["listed"] = len((await of(client.rollouts.list()))["rollouts"]) >= 5
    report["missing"] = await error_of(lambda: client.rollouts.get("never"))
    report["secret"] = "sk-quiet" in json.dumps(streamed)
    return report


async def repeated(client):
    model = {"base_url": REST[0], "api_key": "k", "name": "scripted", "tokens": "trainer"}
    make = lambda at: {"id": f"{KIND}-again-{at}", "environment": ECHO, "task": {"id": "greet"}, "model": model}
    results = await items(client.rollouts.stream([make(at) for at in (1, 2, 3)]))
    return sorted(one["id"] for one in results if reward_of(one["outcome"]) == 1.0)


async def sessions(client):
    report = {}
    report["tasks"] = [[task["id"], task["split"], task["index"]] for task in await of(client.environments.tasks(ECHO))]
    report["test_tasks"] = [task["id"] for task in await of(client.environments.tasks(ECHO, split="test"))]
    session = await of(client.sessions.create(ECHO, "greet", seed=3))
    report["begun"] = [session.observation, session.messages, [tool["name"] for tool in session.tools], session.task["id"]]
    step = await of(session.call_tool("echo", {"text": "hello"}))
    report["step"] = [step.text, step.is_error, step.done, step.reward]
    step = await of(session.call_tool("sing", {}))
    report["wrong"] = [step.is_error, step.done]
    step = await of(session.say("I have said it."))
    report["said"] = [step.is_error, step.done]
    report["score"] = asdict(await of(session.score()))
    await of(session.close())
    await of(session.close())
    report["closed"] = await error_of(lambda: session.call_tool("echo", {"text": "late"}))
    report["no_task"] = await error_of(lambda: client.sessions.create(ECHO, "none"))
    report["setup"] = await error_of(lambda: client.sessions.create(PROBE, "one", variables={"SETUP": "fail"}))
    session = await of(client.sessions.create(PROBE, "one"))
    report["crash"] = await error_of(lambda: session.call_tool("crash"))
    report["score_after"] = await error_of(lambda: session.score())
    await of(session.close())
    return report


async def secured(client):
    """Owners with tokens of their own. The client itself has the token of an admin."""
    kind = type(client)
    ada_token = await of(client.tokens.create("ada", roles=["trainer"], note="a test"))
    bob_token = await of(client.tokens.create("bob", roles=["trainer"]))
    ada, bob = kind(URL, api_key=ada_token["token"]), kind(URL, api_key=bob_token["token"])
    report = {"whoami": (await of(ada.tokens.whoami()))["owner"]}
    report["tokens"] = sorted(one["owner"] for one in await of(client.tokens.list()) if one["owner"] in ("ada", "bob"))
    instance = await of(ada.instances.create(ECHO, task="greet"))
    await of(instance.call_tool("echo", {"text": "hello"}))
    report["reward"] = (await of(instance.score())).reward
    session = await of(ada.sessions.create(ECHO, "greet"))
    report["step"] = (await of(session.call_tool("echo", {"text": "hello"}))).text
    report["other_instance"] = await error_of(lambda: bob.instances.get(instance.id))
    stolen = kind(URL, api_key=bob_token["token"]).sessions
    other = type(session)(stolen._http, ECHO, {"session": session.id})
    report["other_session"] = await error_of(lambda: other.call_tool("echo", {"text": "mine"}))
    await of(session.close())
    await of(instance.delete())
    report["admin_only"] = await error_of(lambda: ada.tokens.list())
    await of(client.tokens.revoke(ada_token["id"]))
    report["revoked"] = await error_of(lambda: ada.environments.list())
    report["secret"] = ada_token["token"] in json.dumps(report)
    for one in (ada, bob):
        await of(one.close())
    await of(stolen._http.close())
    return report


async def main():
    part = globals()[PART]
    if KIND == "async":
        async with AsyncClient(URL) as client:
            return await part(client)
    with Client(URL) as client:
        return await part(client)


print(json.dumps(asyncio.run(main())))
