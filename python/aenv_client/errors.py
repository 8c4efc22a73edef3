"""The errors of this package: `Unscored` for an episode without a score, `PlatformError` for everything the server refuses."""

from __future__ import annotations

from typing import Any, Mapping, NoReturn


class AEnvError(Exception):
    """Base class of all errors of this package."""


class PlatformError(AEnvError):
    """A request failed. Branch on the class or on `code`, a code of the platform's error table; never on the message."""

    def __init__(self, message: str, *, code: str = "internal", retryable: bool = False, status: int = 0, request_id: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.retryable = retryable
        self.status = status
        self.request_id = request_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r}, code={self.code!r})"

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.args, self.__dict__)


class InvalidRequest(PlatformError):
    """The request is not valid; the same request fails again."""


class AccessDenied(PlatformError):
    """The token is missing, invalid, or does not allow this."""


class NotFound(PlatformError):
    """There is no such object, it has ended, or it belongs to another owner."""


class Conflict(PlatformError):
    """An object with this id exists already, or the id was used for another request."""


class QuotaExceeded(PlatformError):
    """A limit of the owner or of the server is reached."""


class ServerError(PlatformError):
    """The platform or the environment failed."""


class NetworkError(PlatformError):
    """The server could not be reached, did not answer in time, or the connection was lost."""


class Unscored(AEnvError):
    """
    An episode ended without a score, and not by the agent's fault. It is never a reward: leave the episode out.

    `cause` is sandbox, environment, model, agent, timeout or cancelled; `stage` is start, reset, play, score or close.
    With `retryable` the same episode may succeed on a fresh instance.
    """

    def __init__(self, message: str, *, cause: str, retryable: bool, stage: str = "play") -> None:
        super().__init__(message)
        self.message = message
        self.cause = cause
        self.retryable = retryable
        self.stage = stage

    def __str__(self) -> str:
        return f"unscored ({self.cause}, at {self.stage}): {self.message}"

    def __repr__(self) -> str:
        return f"Unscored({self.message!r}, cause={self.cause!r}, stage={self.stage!r}, retryable={self.retryable!r})"

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.args, self.__dict__)


def error_class(status: int, code: str | None) -> type[PlatformError]:
    """The class is chosen by the code if the answer has one: sandboxes answer 500 for every failure of a function or a reward."""
    if code in ("request.invalid", "request.too_large"):
        return InvalidRequest
    if code is not None and code.endswith(".not_found"):
        return NotFound
    if status in (401, 403):
        return AccessDenied
    if status in (404, 410):
        return NotFound
    if status == 409:
        return Conflict
    if status == 429:
        return QuotaExceeded
    return ServerError if status >= 500 else InvalidRequest


def reward_of(outcome: Mapping[str, Any]) -> float:
    """The reward of a scored outcome. Raises `Unscored` for any other; there is no default."""
    if outcome.get("kind") == "scored":
        return float(outcome["reward"])
    raise Unscored(
        str(outcome.get("message", "the outcome has no score")),
        cause=str(outcome.get("cause", "sandbox")),
        retryable=bool(outcome.get("retryable", False)),
        stage=str(outcome.get("stage", "play")),
    )


#: Failures of code that the environment's author wrote; all others come from the platform around it.
_ENVIRONMENT_CODES = {
    "environment.invalid",
    "environment.not_found",
    "environment.unhealthy",
    "episode.failed",
    "function.failed",
    "instance.setup_failed",
    "instance.unsupported",
    "reward.failed",
    "reward.missing",
    "task.list_failed",
    "task.not_found",
}
_TIMEOUT_CODES = {"tool.timeout", "request.timeout", "instance.start_timeout"}


def raise_unscored(error: PlatformError, stage: str) -> NoReturn:
    """Raises a failure of the platform as `Unscored`, and a mistake of the caller as it is."""
    if isinstance(error, (InvalidRequest, AccessDenied, Conflict)) or (stage == "start" and isinstance(error, NotFound)):
        raise error
    if error.code in _TIMEOUT_CODES:
        cause, retryable = "timeout", True
    elif error.code in _ENVIRONMENT_CODES:
        cause, retryable = "environment", error.retryable
    else:
        # A call that failed on its way may have run; a fresh instance can play the episode all the same.
        cause, retryable = "sandbox", True
    raise Unscored(error.message, cause=cause, retryable=retryable, stage=stage) from error


def _rebuild(kind: type[AEnvError], args: tuple[Any, ...], fields: dict[str, Any]) -> AEnvError:
    """Errors cross process borders: workers of vector environments and of trainers pickle them."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(fields)
    return error
