"""The values that the client returns. Answers of the server are records: mappings with attributes; fields that are not listed are kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from .records import Record, described

#: The server sends the index of an environment's status.
_ENVIRONMENT_STATUSES = ("Init", "Pending", "Creating", "Created", "Testing", "Verified", "Ready", "Released", "Failed")


class Environment(Record):
    """A version of an environment."""

    _shown = ("name", "version", "status", "visibility", "tags")

    id: str
    name: str
    version: str
    description: str
    tags: list[str] | None
    owner: str | None
    publisher: str | None
    visibility: str | None
    content_digest: str | None
    deploy_config: dict[str, Any] | None
    #: What the environment reported when it was verified: its tools, its count of tasks.
    metadata: dict[str, Any] | None
    created_at: str
    updated_at: str

    @property
    def status(self) -> str:
        """The status by name, such as `Ready`. The key `status` has what the server sent: its index in most answers."""
        value = self.get("status")
        is_index = isinstance(value, int) and 0 <= value < len(_ENVIRONMENT_STATUSES)
        return _ENVIRONMENT_STATUSES[value] if is_index else str(value)


class InstanceRecord(Record):
    """An instance as the server described it when this record was read."""

    _shown = ("id", "environment", "status", "task", "seed", "labels", "reason")
    _records = {"env": Environment}

    id: str
    #: `name@version`.
    environment: str
    #: Pending, Creating, Running, Failed or Terminated.
    status: str
    #: Why it failed or ended.
    reason: str | None
    task: str | None
    seed: int
    env: Environment | None
    owner: str | None
    labels: dict[str, str] | None
    warnings: list[str] | None
    ttl: str | None
    engine: str | None
    agent_url: str | None
    data_url: str | None
    fork_fidelity: str | None
    started_from: dict[str, Any] | None
    created_at: str
    updated_at: str
    expires_at: str | None


class SnapshotRecord(Record):
    """A stored snapshot."""

    _shown = ("name", "id", "environment", "fidelity", "status", "bytes")

    id: str
    name: str
    owner: str
    #: state, files or memory.
    fidelity: str
    #: Creating or Ready.
    status: str
    bytes: int
    digest: str | None
    environment: str
    instance: str
    created_at: str


class Token(Record):
    """A token of an owner. Only the answer that creates it has its secret, the field `token`, which `repr` never shows."""

    _shown = ("id", "owner", "roles", "scopes", "note")

    id: str
    owner: str
    roles: list[str]
    scopes: list[str]
    note: str
    token: str | None
    max_instance_count: int | None
    expires_at: str | None
    created_at: str | None


class Identity(Record):
    """Owner and roles of the token in use, and the token's id."""

    owner: str
    roles: list[str]
    token: str | None


class FileInfo(Record):
    """A file or folder of a sandbox."""

    _shown = ("path", "type", "size", "mode", "target")

    path: str
    #: file, directory, link or other.
    type: str
    size: int
    #: Octal, such as 0644.
    mode: str
    uid: int
    gid: int
    modified_at: str
    target: str | None


class FunctionInfo(Record):
    """A function of an environment."""

    _shown = ("name", "method", "endpoint", "description")

    name: str
    method: str
    endpoint: str
    description: str | None


class Task(Record):
    _shown = ("id", "split", "index", "instruction")

    id: str
    split: str | None
    splits: list[str] | None
    index: int | None
    instruction: str | None
    prompt: Any


class Tool(Record):
    """A tool as MCP describes it."""

    _shown = ("name", "description")

    name: str
    description: str | None
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None


class EpisodeStatus(Record):
    """Whether the episode is over, and why."""

    done: bool
    reason: str | None


class Reply(Record):
    """What the environment answers when the agent speaks."""

    _records = {"status": EpisodeStatus}

    messages: list[dict[str, Any]]
    status: EpisodeStatus


class Outcome(Record):
    """`kind` is scored (with reward, components) or unscored (with cause, stage, message, retryable, and no reward)."""

    _shown = ("kind", "reward", "components", "cause", "stage", "message", "retryable")

    kind: str
    reward: float | None
    components: dict[str, float] | None
    weights: dict[str, float] | None
    cause: str | None
    stage: str | None
    message: str | None
    retryable: bool | None


@dataclass(frozen=True)
class CommandResult:
    """How a command in a sandbox ended, and what it printed."""

    #: None if a signal ended it.
    exit_code: int | None
    signal: str | None
    timed_out: bool
    stdout: str
    stderr: str
    #: Output that is missing in the middle, because it was more than the limit.
    dropped_bytes: int

    def __repr__(self) -> str:
        end = {"exit_code": self.exit_code} if self.signal is None else {"signal": self.signal}
        optional = {"timed_out": self.timed_out, "stderr": self.stderr, "dropped_bytes": self.dropped_bytes}
        return described("CommandResult", **end, stdout=self.stdout, **{name: value for name, value in optional.items() if value})


class Sequence(Record):
    """Tokens to train on: `loss_mask` is 1 for sampled ones. All arrays have the length of `token_ids`."""

    #: Whose tokens these are; None in an environment without roles.
    role: str | None
    prompt_length: int
    token_ids: list[int]
    loss_mask: list[int]
    logprobs: list[float]
    weight_versions: list[dict[str, Any]]
    turns: list[str]


class RolloutRole(Record):
    """What one role of a rollout saw, and how the episode ended for it."""

    _shown = ("player", "agent", "model", "outcome", "trainable")
    _records = {"outcome": Outcome}

    player: str
    agent: str
    model: str | None
    trainable: bool
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    outcome: Outcome
    stop_reason: str
    truncated: bool
    forfeit: str | None
    usage: dict[str, Any]


class RolloutResult(Record):
    """One played episode. `sequences` and the arrays of `turns` are null unless `capture` is `tokens`."""

    _shown = ("id", "outcome", "stop_reason", "num_turns", "tool_calls", "capture")
    _records = {"outcome": Outcome, "task": Task, "sequences": Sequence}

    id: str
    attempt: int | None
    task: Task | None
    group: dict[str, Any] | None
    reward_args: dict[str, Any] | None
    #: None until the rollout has ended.
    outcome: Outcome | None
    stop_reason: str | None
    truncated: bool | None
    num_turns: int | None
    tool_calls: int | None
    capture: str | None
    turns: list[dict[str, Any]] | None
    sequences: list[Sequence] | None
    messages: list[dict[str, Any]] | None
    #: By role; None in an environment without roles.
    roles: dict[str, RolloutRole] | None
    tools: list[dict[str, Any]] | None
    usage: dict[str, Any] | None
    timing: dict[str, Any] | None
    provenance: dict[str, Any] | None
    metadata: dict[str, Any] | None

    def __init__(self, *fields: Any, **more: Any) -> None:
        super().__init__(*fields, **more)
        roles = self.get("roles")
        if isinstance(roles, dict):
            self["roles"] = {name: RolloutRole(role) for name, role in roles.items()}


class RolloutPage(Record):
    """One page of rollouts; `next` is the `after` of the following one."""

    _records = {"rollouts": RolloutResult}

    rollouts: list[RolloutResult]
    next: str | None


class Reset(Record):
    _records = {"task": Task}

    task: Task | None
    seed: int
    observation: Any


@dataclass(frozen=True)
class Reward:
    reward: float
    components: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool call. A tool that fails gives a result too: check `is_error`."""

    content: list[dict[str, Any]]
    is_error: bool = False
    structured_content: Any = None
    #: Whether the episode is over after this call, `{"done", "reason"}`; None where the environment does not say.
    status: EpisodeStatus | None = None

    def __repr__(self) -> str:
        """The text, or the kinds of blocks where there is none."""
        told = self.text or [str(block.get("type")) for block in self.content]
        optional = {"is_error": self.is_error, "status": self.status}
        return described("ToolResult", told, **{name: value for name, value in optional.items() if value})

    @property
    def text(self) -> str:
        """All text blocks, joined by line breaks."""
        return "\n".join(str(block["text"]) for block in self.content if block.get("type") == "text" and "text" in block)

    def json(self) -> Any:
        """The structured content if there is one, else the text parsed as JSON."""
        return json.loads(self.text) if self.structured_content is None else self.structured_content


class SessionRole(Record):
    """What one role of an environment with roles begins with."""

    _records = {"tools": Tool}

    observation: str
    messages: list[dict[str, Any]]
    tools: list[Tool]


@dataclass(frozen=True)
class Step:
    """What the environment answered to one action of a session."""

    observation: Any
    content: list[dict[str, Any]]
    is_error: bool
    done: bool
    #: The reward of this step; None where the environment has no step rewards. The episode's reward is the session's score.
    reward: float | None
    #: The roles that may act now; empty in an environment without roles, as the next two.
    turn: list[str] = field(default_factory=list)
    #: What this step brought each role; None where the environment has no step rewards.
    rewards: dict[str, float | None] = field(default_factory=dict)
    #: What the roles see whose turn has begun with this step.
    observations: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        optional = {"is_error": self.is_error or None, "reward": self.reward, "turn": self.turn or None}
        return described("Step", self.text, **{name: value for name, value in optional.items() if value is not None}, done=self.done)

    @property
    def text(self) -> str:
        return as_text(self.observation)


def as_text(observation: Any) -> str:
    """An observation as a model reads it."""
    if observation is None:
        return ""
    return observation if isinstance(observation, str) else json.dumps(observation, ensure_ascii=False)
