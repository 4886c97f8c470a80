"""Sending a message to a collector: one POST to an address that the user named, and its answer."""

import http.client
import io
from urllib.parse import urlsplit

from perfuse.errors import ExportError, UsageError
from perfuse.exporters.otlp import write
from perfuse.exporters.source import EventSource, Progress

_PATH = "/v1development/profiles"
_TIMEOUT_S = 60
_LARGEST_ANSWER = 1 << 20


def send(profile: EventSource, url: str, *, times: bool = True, progress: Progress | None = None) -> None:
    """Sends a profile to a collector as OTLP over HTTP, in protobuf.

    Nothing else is connected to: a redirect is an error, and no proxy is used.

    Args:
        profile: The profile.
        url: `otlp+http://HOST[:PORT][/PATH]`, or `otlp+https`; by default the path is that of the specification.
        times: Whether samples have their times.
        progress: Called with the name of the current step and the completed share (0 to 1).

    Raises:
        UsageError: `url` has no host, or an invalid port.
        ExportError: There is nothing to send, or the collector cannot be reached, or does not accept all of it.
    """
    parts = urlsplit(url.removeprefix("otlp+"))
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{url}: {error}", field="path") from error
    if not host or parts.username is not None:
        hint = "otlp+http://HOST:PORT, with the path where it is not that of OTLP, and without a user's name"
        raise UsageError(f"{url} is not the address of a collector", field="path", hint=hint)
    body = io.BytesIO()
    write(profile, body, times=times, progress=progress)
    connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connect(host, port or (443 if parts.scheme == "https" else 4318), timeout=_TIMEOUT_S)
    path = parts.path if parts.path not in ("", "/") else _PATH
    try:
        headers = {"Content-Type": "application/x-protobuf"}
        connection.request("POST", path + (f"?{parts.query}" if parts.query else ""), body.getvalue(), headers)
        answer = connection.getresponse()
        content = answer.read(_LARGEST_ANSWER)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or error or type(error).__name__
        raise ExportError(
            f"cannot send to {url}: {reason}", hint="a collector listens on port 4318 by default"
        ) from error
    finally:
        connection.close()
    if answer.status != 200:
        text = content.decode("utf-8", "replace").strip()[:300]
        hint = "the collector needs a receiver of profiles: --feature-gates=service.profilesSupport"
        raise ExportError(
            f"{url} answered {answer.status} {answer.reason}{': ' if text else ''}{text}",
            hint=hint if answer.status == 404 else None,
        )
    kind = answer.headers.get("Content-Type")
    if kind and "protobuf" not in kind:
        hint = "a collector answers OTLP in protobuf; Parca takes OTLP over gRPC only, and pprof files over HTTP"
        raise ExportError(f"{url} answered with {kind}: it does not take OTLP profiles at this address", hint=hint)
    rejected, message = _partial_success(content)
    if rejected:
        raise ExportError(f"{url} rejected {rejected:,} profiles{': ' if message else ''}{message}")


def _partial_success(content: bytes) -> tuple[int, str]:
    """Number of rejected profiles and why, of an `ExportProfilesServiceResponse`."""
    partial = _fields(content).get(1, b"")
    fields = _fields(partial) if isinstance(partial, bytes) else {}
    rejected, message = fields.get(1, 0), fields.get(2, b"")
    return (
        rejected if isinstance(rejected, int) else 0,
        message.decode("utf-8", "replace") if isinstance(message, bytes) else "",
    )


def _fields(content: bytes) -> dict[int, int | bytes]:
    """The numbers and texts of a protobuf message, up to the first field of another type."""
    found: dict[int, int | bytes] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while at < len(content):
            byte = content[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128 or shift > 63:
                break
        return value

    while at < len(content):
        key = number()
        if key & 7 == 0:
            found[key >> 3] = number()
        elif key & 7 == 2:
            length = number()
            found[key >> 3] = content[at : at + length]
            at += length
        else:
            break
    return found
