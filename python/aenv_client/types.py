"""The values that the client returns. Answers of the server are plain dictionaries; fields that are not listed are kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, TypedDict


class Task(TypedDict, total=False):
    id: str
    split: str
    index: int
    instruction: str
    prompt: Any


class Tool(TypedDict, total=False):
    """A tool as MCP describes it."""

    name: str
    description: str
    inputSchema: dict[str, Any]
    outputSchema: dict[str, Any]


class Outcome(TypedDict, total=False):
    """`kind` is scored (with reward, components) or unscored (with cause, stage, message, retryable, and no reward)."""

    kind: str
    reward: float
    components: dict[str, float]
    weights: dict[str, float]
    cause: str
    stage: str
    message: str
    retryable: bool


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


class Sequence(TypedDict, total=False):
    """Tokens to train on: `loss_mask` is 1 for sampled ones. All arrays have the length of `token_ids`."""

    prompt_length: int
    token_ids: list[int]
    loss_mask: list[int]
    logprobs: list[float]
    weight_versions: list[dict[str, Any]]
    turns: list[str]


class RolloutResult(TypedDict, total=False):
    """One played episode. `sequences` and the arrays of `turns` are null unless `capture` is `tokens`."""

    id: str
    attempt: int
    task: Task
    group: dict[str, Any]
    reward_args: dict[str, Any]
    outcome: Outcome
    stop_reason: str
    truncated: bool
    num_turns: int
    tool_calls: int
    capture: str
    turns: list[dict[str, Any]]
    sequences: list[Sequence]
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    usage: dict[str, Any]
    timing: dict[str, Any]
    provenance: dict[str, Any]
    metadata: dict[str, Any]


class Reset(TypedDict):
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
    status: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """All text blocks, joined by line breaks."""
        return "\n".join(str(block["text"]) for block in self.content if block.get("type") == "text" and "text" in block)

    def json(self) -> Any:
        """The structured content if there is one, else the text parsed as JSON."""
        return json.loads(self.text) if self.structured_content is None else self.structured_content


@dataclass(frozen=True)
class Step:
    """What the environment answered to one action of a session."""

    observation: Any
    content: list[dict[str, Any]]
    is_error: bool
    done: bool
    #: The reward of this step; None where the environment has no step rewards. The episode's reward is the session's score.
    reward: float | None

    @property
    def text(self) -> str:
        return as_text(self.observation)


def as_text(observation: Any) -> str:
    """An observation as a model reads it."""
    if observation is None:
        return ""
    return observation if isinstance(observation, str) else json.dumps(observation, ensure_ascii=False)
