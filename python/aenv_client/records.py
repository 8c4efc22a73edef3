"""Records: what the server answers, as mappings whose fields are attributes too."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Iterable, Mapping

#: Longest value that a `repr` shows whole.
_LONGEST_SHOWN = 80


class Record(dict):  # type: ignore[type-arg]
    """
    A mapping with every field that the server sent, under the server's names. `record.id` reads `record["id"]`, and
    `record.input_schema` reads `record["inputSchema"]`. A declared field that the server left out is None as an attribute.
    Its `repr` is one line; `dict(record)` shows all.
    """

    #: Fields of the `repr`, in this order; all if empty. A secret must not be among them.
    _shown: ClassVar[tuple[str, ...]] = ()
    #: Fields whose value is a record, or a list of records, of this class.
    _records: ClassVar[Mapping[str, type[Record]]] = {}

    def __init__(self, *fields: Any, **more: Any) -> None:
        super().__init__(*fields, **more)
        for name, kind in self._records.items():
            value = self.get(name)
            if isinstance(value, list):
                self[name] = records(kind, value)
            elif isinstance(value, dict):
                self[name] = kind(value)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            for key in (name, _camel(name)):
                if key in self:
                    return self[key]
            if any(name in kind.__dict__.get("__annotations__", {}) for kind in type(self).__mro__):
                return None
        raise AttributeError(f"{type(self).__name__} has no field '{name}'; it has: {', '.join(map(str, self)) or 'none'}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"set record['{name}'] instead: the attributes of a record only read its fields")

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *(str(key) for key in self)]

    def __repr__(self) -> str:
        if not self._shown:
            return described(type(self).__name__, **self)
        read = {name: getattr(self, name) for name in self._shown}
        shown = {name: value for name, value in read.items() if value is not None}
        left_out = {"...": None} if len(shown) < len(self) else {}
        return described(type(self).__name__, **shown, **left_out)


def records(kind: type[Any], values: Iterable[Any] | None) -> list[Any]:
    """Each value as a record of this class. What is no object stays as it is."""
    return [kind(value) if isinstance(value, dict) else value for value in values or []]


def described(kind: str, /, *first: Any, **fields: Any) -> str:
    """The `repr` of an object: `Task(id='greet', split='train')`, on one line, with long values cut. The field `...` stands for others."""
    shown = [_short(value) for value in first]
    shown += [key if key == "..." else f"{key}={_short(value)}" for key, value in fields.items()]
    return f"{kind}({', '.join(shown)})"


class Group:
    """A part of a client, such as `client.instances`. Its `repr` names what it can do."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(name for name in vars(type(self)) if not name.startswith('_'))}>"


def _short(value: Any) -> str:
    if isinstance(value, str) and len(value) > _LONGEST_SHOWN:
        return f"{value[: _LONGEST_SHOWN - 3]!r}..."
    text = repr(value)
    if len(text) <= _LONGEST_SHOWN or isinstance(value, (str, Record)):
        return text
    if isinstance(value, (list, tuple)):
        return f"[{len(value)} items]"
    return f"{text[: _LONGEST_SHOWN - 3]}..."


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found.group(1).upper(), name)
