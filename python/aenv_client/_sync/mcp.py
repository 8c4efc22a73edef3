# Generated from _async by make_sync.py.
"""An instance's tools, by MCP over HTTP."""

from __future__ import annotations

import time
from typing import Any, Mapping

from .. import _wire as wire
from .._wire import Call
from ..errors import InvalidRequest, NetworkError, NotFound
from ..records import records
from ..types import EpisodeStatus, Tool, ToolResult
from .http import Http, events

_PROTOCOL = "2025-11-25"
_STATUS_META = "aenv/status"


class Mcp:
    """
    The first request is sent without a session, which AEnv's environments accept. A server that requires `initialize` rejects it
    without running it; then a session is opened and the request is sent again.
    """

    def __init__(self, http: Http, url: str, headers: Mapping[str, str]) -> None:
        self._http = http
        self._url = url
        self._headers = {**headers, "accept": "application/json, text/event-stream", "mcp-protocol-version": _PROTOCOL}
        self._session: dict[str, str] = {}
        self._last_id = 0

    def tools(self) -> list[Tool]:
        tools: list[Tool] = []
        cursor: str | None = None
        while True:
            page = self._request("list the tools", "tools/list", wire.without_none({"cursor": cursor}), "idempotent", None)
            tools.extend(records(Tool, page.get("tools")))
            cursor = page.get("nextCursor")
            if not cursor:
                return tools

    def call(self, name: str, arguments: Mapping[str, Any], timeout: float | None) -> ToolResult:
        params = {"name": name, "arguments": dict(arguments)}
        result = self._request(f"call tool '{name}'", "tools/call", params, "once", timeout)
        status = (result.get("_meta") or {}).get(_STATUS_META)
        status = EpisodeStatus(status) if isinstance(status, dict) else None
        return ToolResult(list(result.get("content") or []), bool(result.get("isError", False)), result.get("structuredContent"), status)

    def _request(self, doing: str, method: str, params: dict[str, Any], rule: str, timeout: float | None) -> Any:
        used = self._session
        try:
            return self._post(doing, method, params, rule, timeout)
        except (InvalidRequest, NotFound) as error:
            needs_session = error.status == 400 and any(word in error.message.lower() for word in ("session", "initializ"))
            if not (error.status == 404 if used else needs_session):
                raise
        self._session = {}
        self._initialize()
        return self._post(doing, method, params, rule, timeout)

    def _initialize(self) -> None:
        params = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": {"name": "aenv-client", "version": "0.1.0"}}
        self._post("open an MCP session", "initialize", params, "idempotent", 30.0)
        body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        headers = {**self._headers, **self._session}
        with self._http.open(Call("open an MCP session", "POST", self._url, body, headers=headers)) as response:
            response.read()

    def _post(self, doing: str, method: str, params: dict[str, Any], rule: str, timeout: float | None) -> Any:
        self._last_id += 1
        request_id = self._last_id
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        headers = {**self._headers, **self._session}
        limit = self._http.timeout if timeout is None else timeout
        # Pings keep a connection alive, so a tool that hangs is noticed by the clock only.
        ends_at = time.monotonic() + limit
        with self._http.open(Call(doing, "POST", self._url, body, rule=rule, headers=headers, timeout=limit)) as response:
            session = response.headers.get("mcp-session-id")
            if method == "initialize" and session:
                self._session = {"mcp-session-id": session}
            for event in events(response):
                result = wire.read_rpc(doing, request_id, [event])
                if result is not None:
                    return result
                if time.monotonic() > ends_at:
                    raise NetworkError(f"could not {doing}: no result within {limit:g} s; it may have run", code="tool.timeout")
        raise NetworkError(f"could not {doing}: the response ended before the result; it may have run", code="network.failed")
