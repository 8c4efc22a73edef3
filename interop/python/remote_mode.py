"""Uses a platform through the original SDK in its remote mode, and prints what it saw as one line of JSON.

Arguments: the platform's URL, and the parts of the report to make. The variable AENV_API_KEY has the token, if the platform needs one.
"""

import asyncio
import json
import logging
import os
import sys
import warnings

warnings.simplefilter("ignore")

from aenv import Environment, setup_logging  # noqa: E402
from aenv.client.scheduler_client import AEnvSchedulerClient  # noqa: E402
from aenv.core.models import EnvStatus  # noqa: E402
from local_mode import attempt, call  # noqa: E402

URL = ""
KEY = os.environ.get("AENV_API_KEY")


def environment(name, **options):
    return Environment(name, aenv_url=URL, api_key=KEY, max_retries=0, **options)


async def methods():
    """Every public method of an environment that runs on the platform."""
    async with environment("echo@1.0.0", owner="ada", labels={"run": "7"}) as env:
        report = {
            "tools": [tool["name"] for tool in await env.list_tools()],
            "text": await call(env, "echo", {"text": "hello"}),
            "prefixed": await call(env, "echo@1.0.0/echo", {"text": "ho", "times": 2}),
            "object": await call(env, "remember", {"name": "color", "text": "blue"}),
            "error": await call(env, "remember", {"name": "shape"}),
            "invalid": await call(env, "echo", {"text": "hello", "times": 99}),
            "functions": [one["name"] for one in (await env.list_functions())["functions"]],
            "function": await env.call_function("transcript", {}),
            "function_unknown": await attempt(env.call_function("unheard_of", {})),
            "reward": await env.call_reward({"calls": 2}),
            "reward_invalid": await attempt(env.call_reward({"calls": "many"})),
            "health": await env.check_health({}),
            "info": await env.get_env_info(),
            "ready": await env.wait_for_ready(timeout=10),
            "openai_tools": await attempt(openai_tools(env)),
            "presigned": await attempt(env.presign_url(8080)),
        }
        answers = await asyncio.gather(*(call(env, "echo", {"text": f"{n}"}) for n in range(16)))
        report["at_once"] = [answer["content"][0]["text"] for answer in answers]
    report["released"] = env._instance is None
    async with AEnvSchedulerClient(f"{URL}:8080", max_retries=0) as client:
        report["still_running"] = [one.id for one in await client.list_env_instances(None, EnvStatus.RUNNING)]
    return report


async def openai_tools(env):
    return [tool.name for tool in await env.list_openai_tools()]


async def life():
    """Opened and released by hand, and opened again by the first call."""
    env = environment("tally@1.0.0")
    report = {"opened": await env.initialize(), "first": (await env.get_env_info())["instance_id"]}
    report["added"] = await call(env, "add", {"n": 2})
    await env.release()
    report["anew"] = await call(env, "add", {"n": 3})
    report["second"] = (await env.get_env_info())["instance_id"]
    await env.release()
    return report


async def long_call():
    """A call far longer than the silence that the client bears; what the tool says on the way comes through at once."""
    env = environment("probe@1.0.0", timeout=2)
    await env.initialize()
    report = {
        "talking": await call(env, "talk", {"times": 12, "everyMs": 300}, timeout=20),
        "gone": await call(env, "wait", {"ms": 60000}, timeout=1),
    }
    # The environment is notified of the aborted call.
    for _ in range(50):
        report["waits"] = await env.call_function("waits", {})
        if report["waits"] == ["aborted"]:
            break
        await asyncio.sleep(0.1)
    report["after"] = await call(env, "count", {})
    await env.release()
    return report


async def options():
    """Variables and arguments arrive; what other engines need does no harm; without the data plane nothing is dialled."""
    variables = {"GREETING": "hi"}
    async with environment("probe@1.0.0", environment_variables=variables, arguments=["--fast"], ttl="1h") as env:
        report = {name: await call(env, "variable", {"name": name}) for name in ("GREETING", "envNAME", "envversion")}
    mounts = [{"id": "OSS_1", "remote_dir": "/data", "local_dir": "/workspace"}]
    async with environment("probe@1.0.0", enable_data_plane=False, mount_points=mounts) as env:
        report["without_data_plane"] = (await env.get_env_info())["status"]
        report["tool_without_data_plane"] = await attempt(env.list_tools())
    async with environment("probe@1.0.0", datasource="") as env:
        report["count"] = await call(env, "count", {})
    return report


async def mounts():
    """What only other engines can mount is accepted, shown in the answer, and said not to be done."""
    wanted = [{"id": "OSS_1", "remote_dir": "/data", "local_dir": "/workspace"}]
    async with AEnvSchedulerClient(f"{URL}:8080", max_retries=0, api_key=KEY) as client:
        made = await client.create_env_instance("probe@1.0.0", ttl="5m", mount_points=wanted)
        none = await client.create_env_instance("probe@1.0.0", ttl="5m", mount_points=[])
        report = {"id": made.id, "status": made.status, "shown": made.env.deploy_config.get("mountPoints"), "none": none.id}
    return report


async def mistakes():
    """The client's errors."""
    return {
        "unknown": await attempt(environment("nowhere@1.0.0").initialize()),
        "no_version": await attempt(latest()),
        "bad_ttl": await attempt(environment("echo@1.0.0", ttl="soon").initialize()),
        "failing_setup": await attempt(environment("probe@1.0.0", environment_variables={"SETUP": "fail"}).initialize()),
    }


async def latest():
    async with environment("echo") as env:
        return await call(env, "echo", {"text": "latest"})


async def scheduler():
    """The client of the control port, by itself."""
    async with AEnvSchedulerClient(f"{URL}:8080", max_retries=0, api_key=KEY) as client:
        made = await client.create_env_instance("echo@1.0.0", ttl="5m", owner="ada", labels={"run": "7"})
        other = await client.create_env_instance("tally@1.0.0", ttl="5m")
        running = await client.wait_for_status(made.id, EnvStatus.RUNNING, timeout=10, check_interval=0.1)
        got = await client.get_env_instance(made.id)

        async def ids(*args):
            mine = {made.id: "made", other.id: "other"}
            return sorted(mine[one.id] for one in await client.list_env_instances(*args) if one.id in mine)

        report = {
            "made": made.model_dump(mode="json"),
            "running": [running.status, running.ip == made.id],
            "got": [got.status, got.labels],
            "listed": await ids(),
            "listed_by_name": await ids("echo"),
            "listed_by_version": await ids("tally@1.0.0"),
            "listed_of_none": await ids("nothing"),
            "listed_running": await ids(None, EnvStatus.RUNNING),
            "listed_failed": await ids(None, EnvStatus.FAILED),
            "presigned": await attempt(client.presign_url(made.id, 8080)),
            "deleted": [await client.delete_env_instance(made.id), await client.delete_env_instance(other.id)],
            "deleted_again": await client.delete_env_instance(made.id),
            "deleted_unknown": await client.delete_env_instance("echo-unknown"),
            "after": (await attempt(client.get_env_instance(made.id))).status,
            "unknown": await attempt(client.get_env_instance("echo-unknown")),
        }
        report["listed_after"] = await ids()
    return report


async def services():
    """The scheduler client's services, from the first replica to the last."""
    async with AEnvSchedulerClient(f"{URL}:8080", max_retries=0, api_key=KEY) as client:
        made = await client.create_env_service(
            "probe@1.0.0",
            service_name="tools",
            replicas=1,
            environment_variables={"GREETING": "hi"},
            owner="ada",
            storage_size="1Gi",
            pvc_name="data",
            mount_path="/data",
            port=8081,
            cpu_request="1",
            memory_limit="2Gi",
        )

        async def until(service_id, available):
            for _ in range(200):
                service = await client.get_env_service(service_id)
                if service.available_replicas == available and service.status == "Running":
                    return service
                await asyncio.sleep(0.1)
            return service

        running = await until("tools", 1)
        other = await client.create_env_service("tally@1.0.0")
        listed = [sorted(one.id for one in await client.list_env_services(name)) for name in (None, "probe", "probe@1.0.0", "no")]
        scaled = await client.update_env_service(other.id, replicas=2, environment_variables={"NEW": "1"})
        report = {
            "made": made.model_dump(mode="json"),
            "running": running.model_dump(mode="json"),
            "listed": [[one.replace(other.id, "other") for one in ids] for ids in listed],
            "updated": [scaled.status, scaled.replicas, scaled.environment_variables],
            "scaled": (await until(other.id, 2)).available_replicas,
            "too_many": await attempt(client.update_env_service("tools", replicas=2)),
            "taken": await attempt(client.create_env_service("probe@1.0.0", service_name="tools")),
            "nowhere": await attempt(client.create_env_service("nowhere@1.0.0")),
            "deleted": [await client.delete_env_service("tools", delete_storage=True), await client.delete_env_service(other.id)],
            "deleted_again": await client.delete_env_service("tools"),
            "unknown": await attempt(client.get_env_service("tools")),
        }
        report["listed_after"] = await client.list_env_services()
    return report


async def main(parts):
    work = {
        "methods": methods,
        "life": life,
        "long_call": long_call,
        "options": options,
        "mounts": mounts,
        "mistakes": mistakes,
        "scheduler": scheduler,
        "services": services,
    }
    return {part: await attempt(work[part]()) for part in parts}


if __name__ == "__main__":
    setup_logging(logging.NullHandler())
    URL = sys.argv[1]
    print(json.dumps(asyncio.run(main(sys.argv[2].split(",")))))
