"""The client of a platform."""

from __future__ import annotations

import os
from types import TracebackType

from .. import _wire as wire
from ..records import described
from .hub import AsyncEnvironments, AsyncTokens
from .http import AsyncHttp
from .instances import AsyncInstances
from .rollouts import AsyncRollouts
from .sessions import AsyncSessions
from .snapshots import AsyncSnapshots


class AsyncClient:
    """
    A platform at `url`, the address of its control API: `AENV_SYSTEM_URL` if absent, else http://localhost:8080. The token is
    `api_key`, else `AENV_API_KEY`. A request fails when nothing arrives for `timeout` seconds; one that may be repeated is
    repeated up to `retries` times.
    """

    def __init__(self, url: str | None = None, *, api_key: str | None = None, timeout: float = 60.0, retries: int = 5) -> None:
        key = os.environ.get("AENV_API_KEY", "") if api_key is None else api_key
        self._http = AsyncHttp(wire.control_url(url), key, timeout, retries)
        self.environments = AsyncEnvironments(self._http)
        self.instances = AsyncInstances(self._http)
        self.rollouts = AsyncRollouts(self._http)
        self.sessions = AsyncSessions(self._http)
        self.snapshots = AsyncSnapshots(self._http)
        self.tokens = AsyncTokens(self._http)

    def __repr__(self) -> str:
        return described(type(self).__name__, self.url)

    @property
    def url(self) -> str:
        return self._http.url

    async def close(self) -> None:
        """Closes the connections. Instances and rollouts live on."""
        await self._http.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()
