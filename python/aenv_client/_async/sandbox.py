"""The sandbox of an instance: commands, files and ports."""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence

from .. import _wire as wire
from .._wire import Call
from ..records import Group, records
from ..types import CommandResult, FileInfo
from .http import AsyncHttp

#: Added to the timeout of a command, so that the server reports the timeout and not the client.
_MARGIN_SECONDS = 30.0
#: Without a timeout the server's own limit counts.
_LONGEST_SECONDS = 24 * 3600.0


class AsyncSandbox(Group):
    """Only instances with a sandbox of their own have commands and files."""

    def __init__(self, http: AsyncHttp, id: str) -> None:
        self._http = http
        self._id = id
        self.files = AsyncSandboxFiles(http, id)

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdin: str | None = None,
        max_output_bytes: int | None = None,
    ) -> CommandResult:
        """Runs a command to its end: a text by `sh -c`, a list as it is. A command that fails gives an exit code and does not raise."""
        body = {
            "command": command if isinstance(command, str) else list(command),
            "timeout_ms": None if timeout is None else round(timeout * 1000),
            "cwd": cwd,
            "env": None if env is None else dict(env),
            "user": user,
            "stdin": stdin,
            "max_output_bytes": max_output_bytes,
            "wait": True,
            "end_with_client": True,
        }
        limit = _LONGEST_SECONDS if timeout is None else timeout + _MARGIN_SECONDS
        doing = f"run a command in instance '{self._id}'"
        call = Call(doing, "POST", f"{_path(self._id)}/exec", wire.without_none(body), rule="once", timeout=limit)
        found = await self._http.send(call)
        return CommandResult(
            exit_code=found["exit_code"],
            signal=found["signal"],
            timed_out=found["timed_out"],
            stdout=found["stdout"],
            stderr=found["stderr"],
            dropped_bytes=found["dropped_bytes"],
        )

    async def port(self, port: int, *, minutes: float = 5) -> str:
        """A link to a port on which a program in the sandbox listens. It works without a token until it expires."""
        body = {"port": port, "expiration_time_in_minutes": minutes}
        doing = f"create a link to port {port} of instance '{self._id}'"
        return str((await self._http.send(Call(doing, "POST", f"{_path(self._id)}/presign-url", body)))["url"])


class AsyncSandboxFiles(Group):
    """The files of a sandbox. A relative path begins at the sandbox's working directory."""

    def __init__(self, http: AsyncHttp, id: str) -> None:
        self._http = http
        self._id = id

    async def read(self, path: str) -> bytes:
        async with self._http.open(self._call(f"read '{path}'", "GET", "", {"path": path})) as response:
            return await response.aread()

    async def read_text(self, path: str) -> str:
        return (await self.read(path)).decode()

    async def write(self, path: str, content: str | bytes, *, mode: int | None = None, append: bool = False) -> None:
        """Replaces a file at once, or appends to it. Folders above it are created."""
        params = {"path": path, "mkdirs": "true", "append": "true" if append else None, "mode": None if mode is None else f"0{mode:03o}"}
        data = content.encode() if isinstance(content, str) else content
        await self._http.send(self._call(f"write '{path}'", "PUT", "", params, content=data, rule="once"))

    async def list(self, path: str = ".", *, recursive: bool = False) -> List[FileInfo]:
        params = {"path": path, "recursive": "true" if recursive else None}
        return records(FileInfo, (await self._http.send(self._call(f"list '{path}'", "GET", "/list", params)))["files"])

    async def stat(self, path: str) -> FileInfo:
        return FileInfo(await self._http.send(self._call(f"describe '{path}'", "GET", "/stat", {"path": path})))

    async def mkdir(self, path: str) -> None:
        """Creates a folder and those above it. An existing one is no error."""
        await self._http.send(self._call(f"create '{path}'", "POST", "/mkdir", body={"path": path, "parents": True}))

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        params = {"path": path, "recursive": "true" if recursive else None}
        await self._http.send(self._call(f"remove '{path}'", "DELETE", "", params, rule="once"))

    async def rename(self, path: str, to: str) -> None:
        await self._http.send(self._call(f"rename '{path}'", "POST", "/rename", body={"path": path, "to": to}, rule="once"))

    def _call(
        self,
        doing: str,
        method: str,
        path: str,
        params: Mapping[str, Any] | None = None,
        *,
        body: Any = None,
        content: bytes | None = None,
        rule: str = "idempotent",
    ) -> Call:
        doing = f"{doing} in instance '{self._id}'"
        return Call(doing, method, f"{_path(self._id)}/files{path}", body, rule, params, content=content)


def _path(id: str) -> str:
    return f"/env-instance/{wire.segment(id)}"
