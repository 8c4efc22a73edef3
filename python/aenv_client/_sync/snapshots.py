# Generated from _async by make_sync.py.
"""Stored snapshots of instances. `instance.store` takes one, and `instances.create(snapshot=name)` starts from it."""

from __future__ import annotations

from typing import Iterator

from .. import _wire as wire
from .._wire import Call
from ..errors import NotFound
from ..records import Group, records
from ..types import SnapshotRecord
from .http import Http


class Snapshots(Group):
    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self) -> Iterator[SnapshotRecord]:
        """The records of all snapshots by name, requested page by page."""
        after: str | None = None
        while True:
            page = self._http.send(Call("list snapshots", "GET", "/snapshots", params={"limit": 1000, "after": after}))
            for record in records(SnapshotRecord, page["items"]):
                yield record
            after = page.get("next")
            if after is None:
                return

    def get(self, name: str) -> SnapshotRecord:
        """Finds a snapshot by name or id."""
        return SnapshotRecord(self._http.send(Call(f"get snapshot '{name}'", "GET", f"/snapshots/{wire.segment(name)}")))

    def delete(self, name: str) -> None:
        """Deletes a snapshot by name or id. Instances that were started from it go on. Deleting twice is allowed."""
        try:
            self._http.send(Call(f"delete snapshot '{name}'", "DELETE", f"/snapshots/{wire.segment(name)}"))
        except NotFound:
            pass
