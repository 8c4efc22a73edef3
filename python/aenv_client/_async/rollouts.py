"""Rollouts: the service plays whole episodes against a model that the caller names."""

from __future__ import annotations

import asyncio
import json
from typing import Any, AsyncIterator, Iterable, List, Mapping

from .. import _wire as wire
from .._wire import Call
from ..errors import NetworkError
from ..records import Group
from ..types import RolloutPage, RolloutResult
from .http import AsyncHttp

#: The server sends a ping every 15 s; a stream that is silent for longer is broken.
_SILENCE_SECONDS = 60.0


class AsyncRollouts(Group):
    """
    A rollout's `id` is its idempotency key: sending it again joins the rollout or returns its result, and never plays twice. So
    lost connections and answers 429 and 5xx are retried with the same id.
    """

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def stream(self, rollouts: Iterable[Mapping[str, Any]], *, fields: str | None = None) -> AsyncIterator[RolloutResult]:
        """
        Plays the rollouts and yields their results as they end. Leaving the loop does not cancel: see `cancel`. `fields` are the names
        of the fields to return beside `id` and `outcome`, such as `sequences,turns`; all if absent.
        """
        pending = {str(one["id"]): dict(one) for one in rollouts}
        failures = 0
        while pending:
            received = 0
            try:
                call = Call(
                    f"play {len(pending)} rollouts",
                    "POST",
                    "/rollouts",
                    {"rollouts": list(pending.values()), "stream": True},
                    rule="rollout",
                    params={"fields": _with_outcome(fields)},
                    headers={"accept": "application/x-ndjson"},
                    timeout=_SILENCE_SECONDS,
                )
                async with self._http.open(call) as response:
                    async for line in response.aiter_lines():
                        result = _read_line(line)
                        if result is None or pending.pop(str(result["id"]), None) is None:
                            continue
                        received += 1
                        yield result
                lost: Exception | None = None
            except NetworkError as error:
                lost = error
            failures = 0 if received > 0 else failures + 1
            if not pending:
                return
            if failures > self._http.retries:
                raise lost or NetworkError(f"the stream ended without the results of {', '.join(pending)}", code="network.failed", retryable=True)
            await asyncio.sleep(wire.wait_before(failures, None) or 0.0)

    async def play(self, rollout: Mapping[str, Any], *, fields: str | None = None) -> RolloutResult:
        """Plays one rollout and returns its result. See `reward_of` for its reward."""
        async for result in self.stream([rollout], fields=fields):
            return result
        raise NetworkError(f"the server sent no result of rollout '{rollout['id']}'", code="network.failed", retryable=True)

    async def submit(self, rollouts: Iterable[Mapping[str, Any]]) -> List[str]:
        """Starts rollouts and returns the accepted ids at once."""
        body = {"rollouts": [dict(one) for one in rollouts], "stream": False}
        data = await self._http.send(Call("submit rollouts", "POST", "/rollouts", body, rule="rollout"))
        return [str(one) for one in data["accepted"]]

    async def get(self, id: str, *, wait: float = 0, fields: str | None = None) -> RolloutResult:
        """The rollout as it is after at most `wait` seconds; it has an `outcome` once it has ended."""
        call = Call(
            f"get rollout '{id}'",
            "GET",
            f"/rollouts/{wire.segment(id)}",
            params={"wait": f"{wait:g}" if wait else None, "fields": _with_outcome(fields)},
            timeout=self._http.timeout + wait,
        )
        return RolloutResult(await self._http.send(call))

    async def result(self, id: str, *, fields: str | None = None) -> RolloutResult:
        """Waits until the rollout has ended."""
        while True:
            found = await self.get(id, wait=30, fields=fields)
            if "outcome" in found:
                return found

    async def list(self, *, run: str | None = None, after: str | None = None) -> RolloutPage:
        """One page of rollouts."""
        return RolloutPage(await self._http.send(Call("list rollouts", "GET", "/rollouts", params={"run": run, "after": after})))

    async def cancel(self, id: str) -> None:
        """Cancels at once. A rollout that has ended keeps its result."""
        await self._http.send(Call(f"cancel rollout '{id}'", "DELETE", f"/rollouts/{wire.segment(id)}"))


def _with_outcome(fields: str | None) -> str | None:
    """A result is recognised by its outcome."""
    return None if fields is None else f"outcome,{fields}"


def _read_line(line: str) -> RolloutResult | None:
    """None for a ping and for a line that was cut by a lost connection."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return RolloutResult(value) if isinstance(value, dict) and "outcome" in value else None
