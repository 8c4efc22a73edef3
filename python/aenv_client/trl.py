"""
TRL: an environment as a class for `environment_factory` of `GRPOTrainer`.

    from aenv_client.trl import environment_class
    trainer = GRPOTrainer(model=..., train_dataset=rows, environment_factory=environment_class("echo@1.0.0"))

The class has one method for each tool, with the signature and the docstring that TRL needs. A row's column `task` is a task's id; its
first observation is appended to the row's last message. The environment owns the reward; an episode that the platform could not score
has the reward None, which TRL leaves out of the group's mean.
"""

from __future__ import annotations

import inspect
import keyword
import re
from typing import Any, Callable, Literal, Mapping, Optional

from . import Client, Session, Unscored, as_text
from .errors import AEnvError

_RESERVED = {"reset", "get_reward"}
_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}


def environment_class(environment: str, *, url: str | None = None, api_key: str | None = None, timeout: float = 60.0) -> type:
    """The class of an environment's episodes. Its tools are read from a session of the environment's first task."""
    client = Client(url, api_key=api_key, timeout=timeout)
    first = next(iter(client.environments.each_task(environment)), None)
    with client.sessions.create(environment, first["id"] if first else None) as session:
        tools = session.tools
    fields: dict[str, Any] = {"_client": client, "_environment": environment, "__doc__": f"Episodes of {environment}."}
    for tool in tools:
        method = _method(tool, fields)
        fields[method.__name__] = method
    name = "".join(part.capitalize() for part in re.findall(r"[A-Za-z0-9]+", environment.partition("@")[0]))
    return type(f"{name}Environment", (_Episodes,), fields)


class _Episodes:
    """One episode after the other. TRL keeps the object and calls `reset` for each; the server ends an idle session."""

    _client: Client
    _environment: str

    def __init__(self) -> None:
        self._session: Session | None = None
        #: Why the current episode has no score.
        self._failure: AEnvError | None = None

    def reset(self, **row: Any) -> str:
        """Begins the episode of a row. A failure of the platform is noted, not raised: TRL would stop the training for it."""
        self._close()
        self._failure = None
        try:
            self._session = self._client.sessions.create(self._environment, row.get("task"), seed=row.get("seed"))
        except Unscored as error:
            self._failure = error
            return ""
        return as_text(self._session.observation)

    def get_reward(self) -> Optional[float]:
        """The score of the episode; None if the platform could not score it."""
        try:
            return None if self._session is None or self._failure is not None else self._session.score().reward
        except AEnvError as error:
            self._failure = error
            return None
        finally:
            self._close()

    def _call(self, name: str, arguments: Mapping[str, Any]) -> str:
        if self._session is None or self._failure is not None:
            return "the environment has failed; the episode is over"
        try:
            step = self._session.call_tool(name, arguments)
        except AEnvError as error:
            # TRL shows exceptions of tools to the model; the episode is left out by `get_reward` instead.
            self._failure = error
            return "the environment has failed; the episode is over"
        return as_text(step.observation)

    def _close(self) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        try:
            session.close()
        except AEnvError:
            # The server ends it when it is idle.
            pass

    __del__ = _close


def _method(tool: Mapping[str, Any], taken: Mapping[str, Any]) -> Callable[..., str]:
    """A function with the tool's name, parameters and description. TRL reads them as it does for a function in a source file."""
    schema = tool.get("inputSchema") or {}
    required = set(schema.get("required") or ())
    names: dict[str, str] = {}
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    lines: list[str] = []
    # Required ones first, as Python wants it.
    for key, value in sorted((schema.get("properties") or {}).items(), key=lambda item: item[0] not in required):
        name = _identifier(key, names)
        names[name] = key
        is_required = key in required
        annotation = _annotation(value) if is_required else Optional[_annotation(value)]
        default = inspect.Parameter.empty if is_required else value.get("default")
        parameters.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation))
        lines.append(f"    {name}: {_one_line(value.get('description')) or key}")

    tool_name = str(tool["name"])
    signature = inspect.Signature(parameters, return_annotation=str)

    def method(*args: Any, **kwargs: Any) -> str:
        given = signature.bind(*args, **kwargs).arguments
        episodes = given.pop("self")
        # An optional argument of None is one that was left out.
        arguments = {names[name]: value for name, value in given.items() if value is not None or names[name] in required}
        return str(episodes._call(tool_name, arguments))

    method.__name__ = _identifier(tool_name, {**taken, **dict.fromkeys(_RESERVED)})
    method.__qualname__ = method.__name__
    method.__signature__ = signature  # type: ignore[attr-defined]
    method.__annotations__ = {one.name: one.annotation for one in parameters[1:]} | {"return": str}
    parts = [_one_line(tool.get("description")) or f"Calls the tool {tool_name}.", ""]
    parts += ["Args:", *lines, ""] if lines else []
    method.__doc__ = "\n".join([*parts, "Returns:", "    The tool's result."])
    return method


def _identifier(name: str, taken: Mapping[str, Any]) -> str:
    """A valid Python name that is not taken; TRL ignores names that begin with an underscore."""
    valid = re.sub(r"\W", "_", name).lstrip("_") or "tool"
    valid = f"n{valid}" if valid[0].isdigit() else valid
    while valid in taken or keyword.iskeyword(valid):
        valid += "_"
    return valid


def _annotation(schema: Mapping[str, Any]) -> Any:
    """The Python type of a JSON schema, as far as TRL's own schemas can say it; Any for the rest."""
    choices = schema.get("enum")
    if choices and all(isinstance(one, (str, int, bool)) for one in choices):
        return Literal[tuple(choices)]
    kind = schema.get("type")
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return list[_annotation(schema["items"])]  # type: ignore[misc]
    return _TYPES.get(kind, Any) if isinstance(kind, str) else Any


def _one_line(text: Any) -> str:
    """Docstrings are parsed by lines, so a description is one line."""
    return " ".join(str(text or "").split())
