"""What the synchronous and the asynchronous client share: addresses, retries, and how answers are read. No I/O."""

from __future__ import annotations

import json
import os
import random
import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, Iterable, Mapping
from urllib.parse import quote, urlsplit, urlunsplit

from .errors import NetworkError, PlatformError, error_class
from .types import Reward

#: Statuses after which a request is sent again. `keyed` requests have an idempotency key; `once` requests must not run twice.
RETRIED: dict[str, set[int]] = {
    "idempotent": {429, 502, 503, 504},
    "rollout": {429, 500, 502, 503, 504},
    "keyed": {429, 503},
    "rejected": {429},
    "once": set(),
}

_CODES = {
    400: "request.invalid",
    401: "access.unauthenticated",
    403: "access.denied",
    404: "route.not_found",
    405: "route.method_not_allowed",
    409: "request.conflict",
    413: "request.too_large",
    429: "quota.exceeded",
    501: "instance.unsupported",
    502: "network.failed",
    503: "network.failed",
    504: "request.timeout",
}

#: With a longer `Retry-After` the response is final.
_LONGEST_RETRY_AFTER = 60.0
_LONGEST_WAIT = 5.0


@dataclass(frozen=True)
class Call:
    """One request. `doing` completes the sentence "could not ..." of an error."""

    doing: str
    method: str
    #: A path of the control API, or a whole URL of another address.
    url: str
    body: Any = None
    rule: str = "idempotent"
    params: Mapping[str, Any] | None = None
    headers: Mapping[str, str] | None = None
    timeout: float | None = None
    #: A body of bytes instead of JSON.
    content: bytes | None = None


def control_url(url: str | None) -> str:
    """The control API: the given address, else `AENV_SYSTEM_URL`, else this machine. Without a port, 8080 is meant."""
    address = (url or os.environ.get("AENV_SYSTEM_URL") or "http://localhost").strip()
    parts = urlsplit(address if "://" in address else f"http://{address}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"'{address}' is not an address: write a URL such as http://localhost:8080")
    netloc = parts.netloc if parts.port is not None else f"{parts.netloc}:8080"
    return urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))


def data_url(control: str, reported: Any) -> str:
    """
    The data port. If the server reports a loopback address, the host of the control API is used; and https is never replaced by
    http on the same host.
    """
    there = urlsplit(control)
    if not isinstance(reported, str) or not reported.startswith(("http://", "https://")):
        return urlunsplit((there.scheme, f"{_host(there.hostname)}:8081", "", "", ""))
    parts = urlsplit(reported)
    host = parts.hostname
    if _is_loopback(host) and not _is_loopback(there.hostname):
        host = there.hostname
    scheme = "https" if there.scheme == "https" and host == there.hostname else parts.scheme
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return urlunsplit((scheme, f"{_host(host)}:{port}", parts.path.rstrip("/"), "", ""))


def are_on_one_host(one: str, other: str) -> bool:
    """Whether a secret for one address may be sent to the other."""
    first, second = urlsplit(one).hostname, urlsplit(other).hostname
    return first == second or (_is_loopback(first) and _is_loopback(second))


def _host(host: str | None) -> str:
    return f"[{host}]" if host and ":" in host else str(host)


def _is_loopback(host: str | None) -> bool:
    return host in ("localhost", "::1") or (host or "").startswith("127.")


def segment(text: str) -> str:
    return quote(text, safe="")


def environment_path(ref: str) -> str:
    """`/env/<name>/<version>`; a name without a version means the newest."""
    name, _, version = ref.partition("@")
    return f"/env/{segment(name)}/{segment(version or 'latest')}"


def without_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def wait_before(attempt: int, retry_after: str | None) -> float | None:
    """Seconds before the next attempt: what the server asks for, else growing with jitter. None: do not wait that long."""
    asked = parse_retry_after(retry_after)
    if asked is not None:
        return asked if asked <= _LONGEST_RETRY_AFTER else None
    whole = min(_LONGEST_WAIT, 0.1 * 2.0**attempt)
    return whole / 2 + random.random() * whole / 2


def parse_retry_after(header: str | None) -> float | None:
    """Both forms of the header: seconds, or a date."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, float(parsedate_to_datetime(header).timestamp()) - time())
    except (TypeError, ValueError):
        return None


def failure(doing: str, status: int, body: str) -> PlatformError:
    """The error of a response. Reads the envelopes of the control API, of sandboxes, of the gateway, and of JSON-RPC."""
    answer = _parse(body)
    error = answer.get("error")
    infos = [error, answer.get("errorInfo"), error.get("data") if isinstance(error, dict) else None]
    info: dict[str, Any] = next((one for one in infos if isinstance(one, dict) and isinstance(one.get("code"), str)), {})
    texts = [answer.get("message"), error, error.get("message") if isinstance(error, dict) else None]
    text = next((one for one in texts if isinstance(one, str) and one), body.strip()[:200] or f"HTTP {status} without a body")
    return error_class(status, info.get("code"))(
        f"could not {doing}: {text}",
        code=info.get("code") or _CODES.get(status, "internal" if status >= 500 else "request.invalid"),
        retryable=bool(info.get("retryable", status in RETRIED["idempotent"])),
        status=status,
        request_id=str(info.get("requestId", "")),
    )


def unreachable(doing: str, url: str, error: Exception, is_timeout: bool) -> NetworkError:
    # The URL's host only: a link's path may be a secret.
    host = urlsplit(url).netloc
    reason = f"{host} did not answer in time" if is_timeout else f"{host} could not be reached: {error or type(error).__name__}"
    code = "request.timeout" if is_timeout else "network.failed"
    return NetworkError(f"could not {doing}: {reason}", code=code, retryable=True)


def read_data(doing: str, status: int, body: str) -> Any:
    """The data of an envelope `{success, data}`, or the whole answer of a route without one."""
    if not body:
        return None
    try:
        answer = json.loads(body)
    except ValueError:
        raise PlatformError(f"could not {doing}: the answer is not JSON: {body[:200]}", code="network.failed", status=status) from None
    if not isinstance(answer, dict) or "success" not in answer:
        return answer
    if answer["success"]:
        return answer.get("data")
    # The original's services answer some failures with status 200.
    raise failure(doing, 500 if status < 400 else status, body)


def read_reward(data: Any) -> Reward:
    """A number, or `{reward, components, weights}`. Anything else is an error: it never counts as 0."""
    value = data.get("reward", data.get("total_reward")) if isinstance(data, dict) else data
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or value in (float("inf"), float("-inf")):
        raise PlatformError(f"the environment's answer is not a reward: {json.dumps(data)[:200]}", code="reward.failed")
    parts = data if isinstance(data, dict) else {}
    return Reward(float(value), dict(parts.get("components") or {}), dict(parts.get("weights") or {}))


def read_rpc(doing: str, request_id: int, lines: Iterable[str]) -> Any:
    """The answer to a JSON-RPC request in a JSON body or in the events of a stream; None if it is not there."""
    for message in map(_parse, lines):
        if isinstance(message.get("error"), dict):
            raise _rpc_failure(doing, message["error"])
        if message.get("id") == request_id and "result" in message:
            return message["result"]
    return None


#: Codes of JSON-RPC for requests that a server refuses; all others are failures of the server.
_RPC_STATUS = {-32600: 400, -32601: 404, -32602: 400}


def _rpc_failure(doing: str, error: dict[str, Any]) -> PlatformError:
    code = error.get("code")
    status = _RPC_STATUS.get(code, 500) if isinstance(code, int) else 500
    given = error.get("data")
    data: dict[str, Any] = given if isinstance(given, dict) else {}
    if code == -32602 and re.search("unknown tool|not found", str(error.get("message")), re.IGNORECASE):
        data = {"code": "tool.not_found", **data}
    return failure(doing, status, json.dumps({"error": {**error, "data": data}}))


def _parse(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
