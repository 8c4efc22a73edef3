"""
Client of AEnv, an environment platform for agentic reinforcement learning.

    with Client("http://localhost:8080") as client:
        with client.instances.create("echo@1.0.0", task="greet") as instance:
            instance.call_tool("echo", {"text": "hello"})
            print(instance.score().reward)

Each RL framework has a module of its own, such as `aenv_client.gymnasium`, which is imported only by those who use it.
"""

from ._async.client import AsyncClient
from ._async.instances import AsyncInstance
from ._async.sessions import AsyncSession
from ._sync.client import Client
from ._sync.instances import Instance
from ._sync.sessions import Session
from .errors import (
    AccessDenied,
    AEnvError,
    Conflict,
    InvalidRequest,
    NetworkError,
    NotFound,
    PlatformError,
    QuotaExceeded,
    ServerError,
    Unscored,
    reward_of,
)
from .records import Record
from .types import (
    CommandResult,
    Environment,
    EpisodeStatus,
    FileInfo,
    FunctionInfo,
    Identity,
    InstanceRecord,
    Outcome,
    Reply,
    Reset,
    Reward,
    RolloutPage,
    RolloutResult,
    RolloutRole,
    Sequence,
    SessionRole,
    SnapshotRecord,
    Step,
    Task,
    Token,
    Tool,
    ToolResult,
    as_text,
)

__all__ = [
    "AEnvError",
    "AccessDenied",
    "AsyncClient",
    "AsyncInstance",
    "AsyncSession",
    "Client",
    "CommandResult",
    "Conflict",
    "Environment",
    "EpisodeStatus",
    "FileInfo",
    "FunctionInfo",
    "Identity",
    "Instance",
    "InstanceRecord",
    "InvalidRequest",
    "NetworkError",
    "NotFound",
    "Outcome",
    "PlatformError",
    "QuotaExceeded",
    "Record",
    "Reply",
    "Reset",
    "Reward",
    "RolloutPage",
    "RolloutResult",
    "RolloutRole",
    "Sequence",
    "ServerError",
    "Session",
    "SessionRole",
    "SnapshotRecord",
    "Step",
    "Task",
    "Token",
    "Tool",
    "ToolResult",
    "Unscored",
    "as_text",
    "reward_of",
]
