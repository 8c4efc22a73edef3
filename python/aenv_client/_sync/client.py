# Generated from _async by make_sync.py.
"""The client of a platform."""

from __future__ import annotations

import os
from types import TracebackType

from .. import _wire as wire
from ..records import described
from .hub import Environments, Tokens
from .http import Http
from .instances import Instances
from .rollouts import Rollouts
from .sessions import Sessions
from .snapshots import Snapshots


class Client:
    """
    A platform at `url`, the address of its control API: `AENV_SYSTEM_URL` if absent, else http://localhost:8080. The token is
    `api_key`, else `AENV_API_KEY`. A request fails when nothing arrives for `timeout` seconds; one that may be repeated is
    repeated up to `retries` times.
    """

    def __init__(self, url: str | None = None, *, api_key: str | None = None, timeout: float = 60.0, retries: int = 5) -> None:
        key = os.environ.get("AENV_API_KEY", "") if api_key is None else api_key
        self._http = Http(wire.control_url(url), key, timeout, retries)
        self.environments = Environments(self._http)
        self.instances = Instances(self._http)
        self.rollouts = Rollouts(self._http)
        self.sessions = Sessions(self._http)
        self.snapshots = Snapshots(self._http)
        self.tokens = Tokens(self._http)

    def __repr__(self) -> str:
        return described(type(self).__name__, self.url)

    @property
    def url(self) -> str:
        return self._http.url

    def close(self) -> None:
        """Closes the connections. Instances and rollouts live on."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
