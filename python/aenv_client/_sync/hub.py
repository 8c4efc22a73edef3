# Generated from _async by make_sync.py.
"""Environments and their tasks; tokens."""

from __future__ import annotations

from typing import Iterator, List, Sequence

from .. import _wire as wire
from .._wire import Call
from ..records import Group, records
from ..types import Environment, Identity, Task, Token
from .http import Http


class Environments(Group):
    def __init__(self, http: Http) -> None:
        self._http = http

    def list(
        self, *, name: str | None = None, tag: str | None = None, query: str | None = None, limit: int = 100, offset: int = 0
    ) -> List[Environment]:
        params = {"limit": limit, "offset": offset, "name": name, "tag": tag, "q": query}
        return records(Environment, self._http.send(Call("list environments", "GET", "/env/", params=params)))

    def get(self, ref: str) -> Environment:
        """A version; for a name without a version the newest."""
        return Environment(self._http.send(Call(f"get environment '{ref}'", "GET", wire.environment_path(ref))))

    def versions(self, name: str) -> List[Environment]:
        """A name's versions, newest first."""
        return records(Environment, self._http.send(Call(f"list the versions of '{name}'", "GET", f"/env/{wire.segment(name)}")))

    def tasks(self, ref: str, *, split: str | None = None) -> List[Task]:
        """All tasks of an environment, or those of one split. No instance is needed."""
        return [task for task in self.each_task(ref, split=split)]

    def each_task(self, ref: str, *, split: str | None = None) -> Iterator[Task]:
        """The tasks, requested page by page."""
        after: str | None = None
        while True:
            params = {"split": split, "after": after}
            path = f"/environments/{wire.segment(ref)}/tasks"
            # The server may have to start the environment to ask it for its tasks.
            page = self._http.send(Call(f"list the tasks of '{ref}'", "GET", path, params=params, timeout=300.0))
            for task in records(Task, page["tasks"]):
                yield task
            after = page.get("next")
            if after is None:
                return


class Tokens(Group):
    """Creates, lists and revokes tokens. Requires the role admin, except for `whoami`."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def create(
        self,
        owner: str,
        *,
        roles: Sequence[str] | None = None,
        note: str | None = None,
        scopes: Sequence[str] | None = None,
        expires_at: str | None = None,
        max_instances: int | None = None,
    ) -> Token:
        """The secret is the field `token` of this answer; it cannot be read later. `expires_at` is a time such as 2030-01-31T00:00:00Z."""
        fields = {"owner": owner, "roles": roles, "note": note, "scopes": scopes, "expiresAt": expires_at, "maxInstanceCount": max_instances}
        return Token(self._http.send(Call("create a token", "POST", "/token", wire.without_none(fields), rule="once")))

    def list(self, *, owner: str | None = None) -> List[Token]:
        return records(Token, self._http.send(Call("list tokens", "GET", "/token", params={"owner": owner})))

    def revoke(self, id: str) -> None:
        self._http.send(Call(f"revoke token '{id}'", "DELETE", f"/token/{wire.segment(id)}"))

    def whoami(self) -> Identity:
        """Owner and roles of the token in use."""
        return Identity(self._http.send(Call("look up this token's owner", "GET", "/whoami")))
