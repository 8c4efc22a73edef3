# Generated from _async by make_sync.py.
"""Instances: running environments, with their tools and their trainer API."""

from __future__ import annotations

import uuid
from types import TracebackType
from typing import Any, Iterator, List, Mapping, Sequence

from .. import _wire as wire
from .._wire import Call
from ..errors import AccessDenied, NotFound, PlatformError, ServerError
from ..records import Group, described, records
from ..types import EpisodeStatus, FunctionInfo, InstanceRecord, Reply, Reset, Reward, SnapshotRecord, Task, Tool, ToolResult
from .http import Http
from .mcp import Mcp
from .sandbox import Sandbox

_START_SECONDS = 500.0
#: A snapshot of gigabytes takes a while to store.
_STORE_SECONDS = 600.0
#: Shorter than the usual timeout of proxies.
_LONGEST_STATUS_WAIT = "20s"
_TASKS_PER_PAGE = 500


class Instances(Group):
    def __init__(self, http: Http) -> None:
        self._http = http

    def create(
        self,
        environment: str,
        *,
        task: str | None = None,
        seed: int | None = None,
        ttl: str | None = None,
        variables: Mapping[str, str] | None = None,
        arguments: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        datasource: str | None = None,
        snapshot: Any = None,
        egress: str | Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> Instance:
        """
        Creates an instance and waits until it runs. Without a `ttl` it ends after the environment's own, or 30 minutes. The
        instance is deleted by `with`, or by `delete`. `snapshot` is what it continues from: a stored snapshot by name or id, or a
        state that `snapshot` of an instance has returned. `egress` narrows where its programs may connect to: `"none"`, `"open"` or
        `{"allow": ["api.example.com:443"]}`. `secrets` are variables and the names of your secrets that they get.
        """
        body = {
            "envName": environment,
            "ttl": ttl or "30m",
            "ttlIsFallback": True if ttl is None else None,
            "environment_variables": None if variables is None else dict(variables),
            "arguments": None if arguments is None else list(arguments),
            "labels": None if labels is None else dict(labels),
            "datasource": datasource,
            "task": task,
            "seed": seed,
            "snapshot": snapshot,
            "egress": egress if egress is None or isinstance(egress, str) else dict(egress),
            "secrets": None if secrets is None else dict(secrets),
        }
        # With the key each call creates one instance, also when the request is sent again.
        headers = {"idempotency-key": uuid.uuid4().hex}
        doing = f"create an instance of '{environment}'"
        call = Call(doing, "POST", "/env-instance", wire.without_none(body), rule="keyed", headers=headers)
        record = self._http.send(call)
        try:
            return Instance(self._http, self._running(record))
        except BaseException:
            self._http.send(_delete(record["id"]))
            raise

    def get(self, id: str) -> Instance:
        """A handle of an instance that exists already."""
        return Instance(self._http, self._http.send(Call(f"get instance '{id}'", "GET", _path(id))))

    def list(self, *, environment: str | None = None, status: str | None = None) -> Iterator[InstanceRecord]:
        """The records of all matching instances, requested page by page."""
        after: str | None = None
        while True:
            params = {"envName": environment, "status": status, "limit": 1000, "after": after}
            page = self._http.send(Call("list instances", "GET", "/env-instance/list", params=params))
            for record in records(InstanceRecord, page["items"]):
                yield record
            after = page.get("next")
            if after is None:
                return

    def _running(self, record: dict[str, Any]) -> dict[str, Any]:
        while record["status"] in ("Pending", "Creating"):
            call = Call(f"wait for instance '{record['id']}'", "GET", _path(record["id"]), params={"wait": _LONGEST_STATUS_WAIT})
            record = self._http.send(call)
        if record["status"] == "Running":
            return record
        reason = record.get("reason") or "the server gave no reason"
        raise ServerError(f"instance '{record['id']}' is {record['status']}: {reason}", code="instance.start_failed", retryable=True)


class Instance:
    """One running environment. `with` deletes it at the end."""

    def __init__(self, http: Http, record: dict[str, Any]) -> None:
        self._http = http
        #: What the server said when the instance was created, opened or renewed.
        self.record = InstanceRecord(record)
        self.id = str(record["id"])
        self.environment = str(record.get("environment") or "")
        data_url = wire.data_url(http.url, record.get("data_url"))
        self._url = f"{data_url}/env-instance/{wire.segment(self.id)}"
        access = record.get("data_access")
        may_send = wire.are_on_one_host(http.url, data_url)
        if access == "token" and http.auth and not may_send:
            raise AccessDenied(
                f"the data port {data_url} is on another host than the control API, so the token is not sent to it", code="access.denied"
            )
        self._headers = http.auth if may_send and access in ("token", "id or token") else {}
        self._mcp = Mcp(http, f"{self._url}/mcp", self._headers)
        #: Commands, files and ports of its own sandbox.
        self.sandbox = Sandbox(http, self.id)

    def __repr__(self) -> str:
        episode = {name: self.record.get(name) for name in ("task", "seed") if self.record.get(name) is not None}
        return described(type(self).__name__, self.id, environment=self.environment, **episode)

    @property
    def agent_url(self) -> str | None:
        """The URL for an agent's MCP client: it gives access to the tools and to nothing else."""
        url = self.record.get("agent_url")
        return str(url) if url else None

    def tools(self) -> list[Tool]:
        return self._mcp.tools()

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> ToolResult:
        """Calls a tool, once. A tool that fails gives a result with `is_error`; only a call without a result raises."""
        return self._mcp.call(name.removeprefix(f"{self.environment}/"), arguments or {}, timeout)

    def tasks(self, *, split: str | None = None) -> list[Task]:
        tasks: list[Task] = []
        while True:
            params = {"offset": len(tasks), "limit": _TASKS_PER_PAGE, "split": split}
            page = self._send("list the tasks", "GET", "/task/list", params=params)
            tasks.extend(records(Task, page["items"]))
            if not page["items"] or len(tasks) >= page["total"]:
                return tasks

    def reset(self, *, task: str | None = None, seed: int | None = None) -> Reset:
        """Begins a new episode; what is left out keeps its value. Returns the task, the seed and the first observation."""
        # Sent once: a reset that arrives after its repetition would discard an episode that has begun.
        body = wire.without_none({"task": task, "seed": seed})
        return Reset(self._send("reset the instance", "POST", "/task/reset", body, rule="once"))

    def score(self, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Reward:
        """The reward of the episode so far. Raises if there is none; it never counts as 0."""
        return wire.read_reward(self._send("compute the reward", "POST", "/task/reward", dict(arguments or {}), rule="once", timeout=timeout))

    def functions(self) -> list[FunctionInfo]:
        return records(FunctionInfo, (self._send("list the functions", "GET", "/functions/list"))["functions"])

    def call_function(self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Any:
        """Calls a function at the path and by the method that the environment declares."""
        known = self.functions()
        found = next((one for one in known if one["name"] == name), None)
        if found is None:
            names = ", ".join(str(one["name"]) for one in known) or "none"
            raise NotFound(f"'{self.environment}' has no function '{name}'; it has: {names}", code="function.not_found", status=404)
        method = str(found["method"]).upper()
        given = dict(arguments or {})
        rule = "idempotent" if method == "GET" else "once"
        with_body = method in ("POST", "PUT", "PATCH")
        return self._send(
            f"call function '{name}'",
            method,
            str(found["endpoint"]),
            given if with_body else None,
            params=None if with_body else given,
            rule=rule,
            timeout=timeout,
        )

    def health(self) -> dict[str, Any]:
        found: dict[str, Any] = self._send("check the health", "GET", "/health")
        return found

    def snapshot(self) -> Any:
        """The state as a value, for `restore`, or for the `snapshot` of a new instance."""
        return self._send("take a snapshot", "POST", "/state/snapshot", {})

    def store(self, name: str | None = None, fidelity: str = "state", *, include_secrets: bool = False) -> SnapshotRecord:
        """
        Stores a snapshot on the platform, and returns its record. New instances start from it by `snapshot=name`. With the fidelity `files`
        it also has the files of the sandbox, with `memory` its processes and their memory. Of an instance that got secrets, which may be in
        there, these are stored only with `include_secrets`.
        """
        body = wire.without_none({"name": name, "fidelity": fidelity, "include_secrets": include_secrets or None})
        call = Call(f"take a snapshot of instance '{self.id}'", "POST", f"{_path(self.id)}/snapshot", body, rule="once", timeout=_STORE_SECONDS)
        return SnapshotRecord(self._http.send(call))

    def restore(self, snapshot: Any) -> None:
        self._send("restore a snapshot", "POST", "/state/restore", {"snapshot": snapshot}, rule="once")

    def digest(self) -> str:
        """The digest of the state: equal states have equal digests."""
        return str((self._send("compute the digest", "GET", "/state/digest"))["digest"])

    def prompt(self) -> list[dict[str, Any]]:
        """The messages that an agent begins with."""
        found: list[dict[str, Any]] = (self._send("get the prompt", "GET", "/episode/prompt"))["messages"]
        return found

    def reply(self, text: str, *, timeout: float | None = None) -> Reply:
        """What the environment answers when the agent speaks: `messages` and `status`."""
        body = {"message": {"role": "assistant", "content": text}}
        return Reply(self._send("get the reply", "POST", "/episode/reply", body, rule="once", timeout=timeout))

    def status(self) -> EpisodeStatus:
        """Whether the episode is over: `done` and `reason`."""
        return EpisodeStatus(self._send("get the status of the episode", "GET", "/episode/status"))

    def fork(self, count: int = 1, fidelity: str | None = None) -> list[Instance]:
        """Copies that continue from the current state; each is an instance of its own and must be deleted.

        With the fidelity `files` they also have the files of the sandbox, with `memory` its processes and their memory. Without one, copies
        of an environment in TypeScript have its `state`, and those of a program its `memory`, or its `files` where memory cannot be copied.
        `record["fork_fidelity"]` of a copy says what it has.
        """
        doing = f"fork instance '{self.id}'"
        body = wire.without_none({"count": count, "fidelity": fidelity})
        call = Call(doing, "POST", f"{_path(self.id)}/fork", body, rule="keyed", headers={"idempotency-key": uuid.uuid4().hex})
        records = self._http.send(call)
        instances = Instances(self._http)
        try:
            return [Instance(self._http, instances._running(record)) for record in records]
        except BaseException:
            for record in records:
                self._http.send(_delete(record["id"]))
            raise

    def renew(self, ttl: str) -> None:
        """The instance ends after this time from now, such as `30m`."""
        self.record = InstanceRecord(self._http.send(Call(f"renew instance '{self.id}'", "POST", f"{_path(self.id)}/renew", {"ttl": ttl})))

    def port_url(self, port: int, *, minutes: float = 5) -> str:
        """A link to a port inside the sandbox, for HTTP and WebSocket. It works without a token until it expires."""
        body = {"port": port, "expiration_time_in_minutes": minutes}
        doing = f"create a link to port {port} of instance '{self.id}'"
        return str((self._http.send(Call(doing, "POST", f"{_path(self.id)}/presign-url", body)))["url"])

    def delete(self) -> None:
        """Deleting twice is allowed."""
        try:
            self._http.send(_delete(self.id))
        except NotFound:
            pass

    def __enter__(self) -> Instance:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.delete()
        except PlatformError:
            # It ends by its ttl; the block's own result is not lost for that.
            pass

    def _send(
        self,
        doing: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        rule: str = "idempotent",
        params: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Any:
        doing = f"{doing} of '{self.environment}'"
        return self._http.send(Call(doing, method, self._url + path, body, rule, params, self._headers, timeout))


def _path(id: str) -> str:
    return f"/env-instance/{wire.segment(id)}"


def _delete(id: str) -> Call:
    return Call(f"delete instance '{id}'", "DELETE", _path(id))
