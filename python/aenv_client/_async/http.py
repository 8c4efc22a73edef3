"""One HTTP client with retries, for the control API and for instances."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, AsyncIterator

import httpx

from .. import _wire as wire
from .._wire import Call


class AsyncHttp:
    def __init__(self, url: str, api_key: str, timeout: float, retries: int) -> None:
        self.url = url
        self.auth = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self.timeout = timeout
        self.retries = retries
        # A trainer plays thousands of episodes at once: requests do not wait for each other here.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)
        self.client = httpx.AsyncClient(timeout=timeout, limits=limits, follow_redirects=False)

    async def close(self) -> None:
        await self.client.aclose()

    async def send(self, call: Call) -> Any:
        """The data of the answer."""
        async with AsyncExchange(self, call) as response:
            return wire.read_data(call.doing, response.status_code, (await response.aread()).decode())

    def open(self, call: Call) -> AsyncExchange:
        """The response with its body unread."""
        return AsyncExchange(self, call)


class AsyncExchange:
    """A request, repeated as its rule allows, and its successful response; leaving the block closes it."""

    def __init__(self, http: AsyncHttp, call: Call) -> None:
        self._http = http
        self._call = call
        # The platform's token is sent to the control API only; for other addresses the caller passes headers.
        is_control = call.url.startswith("/")
        self._url = http.url + call.url if is_control else call.url
        self._headers = {**(http.auth if is_control else {}), **(call.headers or {})}
        self._response: httpx.Response | None = None

    async def __aenter__(self) -> httpx.Response:
        attempt = 0
        while True:
            wait = await self._attempt(attempt)
            if self._response is not None:
                return self._response
            await asyncio.sleep(wait)
            attempt += 1

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._response is not None:
            await self._response.aclose()
        if isinstance(error, httpx.HTTPError):
            raise self._unreachable(error) from error

    async def _attempt(self, attempt: int) -> float:
        """Sets the response, or returns how long to wait before the next attempt."""
        is_last = attempt >= self._http.retries
        rule = self._call.rule
        try:
            response = await self._http.client.send(self._request(), stream=True)
        except httpx.HTTPError as error:
            was_sent = not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
            wait = wire.wait_before(attempt, None)
            if is_last or wait is None or (was_sent and rule in ("once", "rejected")):
                raise self._unreachable(error) from error
            return wait
        if response.is_success:
            self._response = response
            return 0.0
        try:
            body = (await response.aread()).decode(errors="replace")
        except httpx.HTTPError:
            body = ""
        finally:
            await response.aclose()
        failure = wire.failure(self._call.doing, response.status_code, body)
        wait = wire.wait_before(attempt, response.headers.get("retry-after"))
        # A 500 is repeated only if it says that a retry may help.
        may_repeat = response.status_code in wire.RETRIED[rule] and (failure.retryable or response.status_code != 500)
        if is_last or wait is None or not may_repeat:
            raise failure
        return wait

    def _request(self) -> httpx.Request:
        call = self._call
        limit = self._http.timeout if call.timeout is None else call.timeout
        return self._http.client.build_request(
            call.method,
            self._url,
            params=wire.without_none(dict(call.params)) if call.params else None,
            headers=self._headers,
            timeout=httpx.Timeout(limit, connect=min(30.0, limit), pool=None),
            **({} if call.body is None else {"json": call.body}),
            **({} if call.content is None else {"content": call.content}),
        )

    def _unreachable(self, error: httpx.HTTPError) -> Exception:
        return wire.unreachable(self._call.doing, self._url, error, isinstance(error, httpx.TimeoutException))


async def events(response: httpx.Response) -> AsyncIterator[str]:
    """The data of each server-sent event; a JSON body is one event."""
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        yield (await response.aread()).decode()
        return
    data: list[str] = []
    async for line in response.aiter_lines():
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif line == "" and data:
            yield "\n".join(data)
            data = []
