"""What the server answers at which path: a fixed list, without any path of a file."""

import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from perfuse.errors import PerfuseError, QueryError, UsageError
from perfuse.reports.json_text import json_text
from perfuse.viewer.answers.parameters import Parameters, RequestError, as_request_error

if TYPE_CHECKING:
    from perfuse.viewer.session import Session

CONTENT_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
}
PAGE = "/m/view/view.html"
JSON_TYPE = "application/json"
BINARY_TYPE = "application/octet-stream"
MOST_ANSWER_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: body, type of its content, HTTP status, further headers."""

    body: bytes
    content_type: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Content = Mapping[str, Any] | bytes
"""What an answer contains: an object that is sent as JSON, or bytes."""

QUESTIONS: Mapping[str, tuple[str, str]] = {
    "overview": ("overview", "overview"),
    "report": ("report", "report"),
    "timeline": ("timeline", "timeline"),
    "symbols": ("timeline", "symbols"),
    "tiles": ("timeline", "tiles"),
    "slice": ("slices", "slice_at"),
    "neighbour": ("slices", "neighbour"),
    "find": ("slices", "find"),
    "slowest": ("slices", "slowest"),
    "counters": ("counters", "counters"),
    "activity": ("heat", "activity"),
    "heat": ("heat", "heat"),
    "tree": ("tree", "tree"),
    "functions": ("functions", "functions"),
    "calls": ("functions", "calls"),
    "callers": ("functions", "callers"),
    "diff": ("difference", "difference"),
    "filters": ("filters", "filters"),
    "annotate": ("annotate", "annotate"),
    "heap/types": ("heap", "types"),
    "heap/dominated": ("heap", "dominated"),
    "heap/object": ("heap", "object_at"),
    "heap/instances": ("heap", "instances"),
    "heap/paths": ("heap", "paths"),
    "heap/growth": ("heap", "growth"),
    "heap/sites": ("heap", "sites"),
    "heap/tree": ("heap", "tree"),
    "code": ("code", "code"),
    "code/timeline": ("code", "over_time"),
    "code/space": ("code", "space"),
    "code/life": ("code", "life"),
    "files": ("inputs", "inputs"),
    "tables": ("sql", "tables"),
}
"""Questions: the module of `perfuse.viewer.answers` and its function, which takes session and parameters."""

COMMANDS: Mapping[str, tuple[str, str]] = {"sql": ("sql", "query"), "sql/cancel": ("sql", "cancel")}
"""Questions with a body, an object in JSON: the function takes session and object."""


class Routes:
    """The answers of a session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._files = dict(_static_files())

    def answer(self, method: str, path: str, query: str, body: bytes) -> Answer:
        """The answer to a request that was checked.

        Raises:
            RequestError: It cannot be answered.
        """
        if not path.startswith("/api/"):
            return self._static(method, path)
        name = path.removeprefix("/api/")
        if method == "POST":
            return _encoded(self._command(name, body))
        if name in COMMANDS or name in ("cancel", "close"):
            raise RequestError(405, "method", f"{path} takes POST")
        parameters = Parameters(query)
        content = self._content(name, parameters)
        parameters.check_all_read()
        return _encoded(content)

    def symbols(self, method: str, path: str, body: bytes) -> Answer:
        """The answer to the Firefox Profiler, about a request that was checked.

        Raises:
            RequestError: It cannot be answered.
        """
        from perfuse.viewer.firefox import FirefoxAnswers

        answers = FirefoxAnswers(self._session)
        if path == "/profile.json":
            if method != "GET":
                raise RequestError(405, "method", "this address takes GET")
            return Answer(answers.profile(), JSON_TYPE, headers={"Content-Encoding": "gzip"})
        if method != "POST":
            raise RequestError(405, "method", "this address takes POST")
        return _encoded(answers.answer(path, body))

    def failure(self, error: Exception) -> Answer:
        """The answer where an error of the API or a defect was raised."""
        from perfuse.errors import core_error

        known = error if isinstance(error, PerfuseError) else core_error(error)
        if isinstance(known, UsageError | QueryError):
            request = as_request_error(known)
        elif isinstance(known, PerfuseError):
            request = RequestError(409, "input", str(known), known.hint)
        else:
            message = f"internal error: {type(error).__name__}: {error}"
            request = RequestError(500, "internal", message, "this is a defect in perfuse: please report it")
        content = {"error": {"code": request.code, "message": str(request), "hint": request.hint}}
        return Answer(json.dumps(content).encode(), JSON_TYPE, request.status)

    def _static(self, method: str, path: str) -> Answer:
        found = self._files.get(PAGE if path == "/" else path)
        if found is None:
            raise RequestError(404, "not_found", "there is nothing at this address")
        if method != "GET":
            raise RequestError(405, "method", "this address takes GET")
        content_type, file = found
        return Answer(file.read_bytes(), content_type)

    def _content(self, name: str, parameters: Parameters) -> Content:
        if name == "state":
            return self._session.state(parameters.number("after"))
        if name == "ping":
            return {}
        if name not in QUESTIONS:
            raise RequestError(404, "not_found", "there is no such question")
        return self._call(*QUESTIONS[name], parameters)

    def _command(self, name: str, body: bytes) -> Content:
        if name == "cancel":
            self._session.cancel()
            return {}
        if name == "close":
            return {}
        if name not in COMMANDS:
            known = name in QUESTIONS or name in ("state", "ping")
            raise RequestError(405 if known else 404, "method" if known else "not_found", "there is no such question")
        try:
            request = json.loads(body or b"{}")
        except (ValueError, RecursionError):
            raise RequestError(400, "bad_json", "the body is not JSON") from None
        if not isinstance(request, dict):
            raise RequestError(400, "bad_json", "the body is not an object")
        return self._call(*COMMANDS[name], request)

    def _call(self, module: str, function: str, request: Any) -> Content:
        answers = importlib.import_module(f"perfuse.viewer.answers.{module}")
        ask: Callable[[Session, Any], Content] = getattr(answers, function)
        return ask(self._session, request)


def _encoded(content: Content) -> Answer:
    if isinstance(content, bytes):
        return Answer(content, BINARY_TYPE)
    body = json_text(content, indent=None).encode("utf-8", "backslashreplace")
    if len(body) > MOST_ANSWER_BYTES:
        raise RequestError(413, "too_many", "the answer is too large", "ask for fewer rows")
    return Answer(body, JSON_TYPE)


def _static_files() -> Iterator[tuple[str, tuple[str, Traversable]]]:
    """Files of the page by their paths, as they are at the start."""
    for folder in files("perfuse.viewer").iterdir():
        if folder.is_dir():
            for file in folder.iterdir():
                suffix = file.name[file.name.rfind(".") :]
                if suffix in CONTENT_TYPES:
                    yield f"/m/{folder.name}/{file.name}", (CONTENT_TYPES[suffix], file)
