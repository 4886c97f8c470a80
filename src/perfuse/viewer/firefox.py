"""What the Firefox Profiler and profiler-cli ask a symbol server for: the profile, symbols, source files, machine code.

The questions and answers are those of Mozilla's symbol servers and of samply: `/symbolicate/v5`, `/source/v1`,
`/asm/v1`. Whatever goes wrong is an answer with status 200 and a member `error`: that is what the front end shows.
"""

from __future__ import annotations

import gzip
import io
import json
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from perfuse import _core
from perfuse.errors import ExportWarning, PerfuseError
from perfuse.reports.units import hex_text
from perfuse.viewer.answers.parameters import RequestError

if TYPE_CHECKING:
    from perfuse.viewer.session import Session
    from perfuse.viewer.symbolication import Libraries, Library, Located

ORIGIN = "https://profiler.firefox.com"
"""The only site whose pages may ask."""
MOST_ADDRESSES = 200_000
"""Addresses of one request."""
ARCHITECTURES = {"x86_64": "x86_64", "x86": "i686", "aarch64": "aarch64", "arm": "arm"}


class SymbolError(Exception):
    """What the front end is shown instead of an answer."""


def front_end_url(base: str) -> str:
    """The address at which the Firefox Profiler loads the profile from this server and asks it for symbols."""
    profile, server = quote(f"{base}/profile.json", safe=""), quote(base, safe="")
    return f"{ORIGIN}/from-url/{profile}/?symbolServer={server}"


class FirefoxAnswers:
    """Answers to the Firefox Profiler about the profile of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def profile(self) -> bytes:
        """The profile in its format, compressed."""

        def make() -> bytes:
            from perfuse.exporters.firefox import write

            out = io.BytesIO()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ExportWarning)
                write(self._session.profile, out)
            return gzip.compress(out.getvalue(), 6)

        return self._session.cached("firefox-profile", make)

    def answer(self, path: str, body: bytes) -> dict[str, Any]:
        """The answer to a question.

        Raises:
            RequestError: There is no such question, or the files are being read.
        """
        questions: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "/symbolicate/v5": self._symbolicate,
            "/source/v1": self._source,
            "/asm/v1": self._assembly,
        }
        if path not in questions:
            raise RequestError(404, "not_found", "there is nothing at this address")
        try:
            return questions[path](_request(body))
        except (SymbolError, PerfuseError) as error:
            return {"error": str(error)}
        except (ValueError, RecursionError):
            return {"error": "the request is not JSON"}

    @property
    def _libraries(self) -> Libraries:
        from perfuse.viewer.symbolication import Libraries

        profile = self._session.profile
        return self._session.cached("libraries", lambda: Libraries(profile))

    def _symbolicate(self, request: dict[str, Any]) -> dict[str, Any]:
        jobs = request.get("jobs", [request])
        if not isinstance(jobs, list):
            raise SymbolError("jobs is not a list")
        left = MOST_ADDRESSES
        results = []
        for job in jobs:
            modules, stacks = _job(job)
            left -= sum(map(len, stacks))
            if left < 0:
                raise SymbolError(f"more than {MOST_ADDRESSES:,} addresses")
            results.append(self._symbols(modules, stacks))
        return {"results": results}

    def _symbols(self, modules: list[tuple[str, str]], stacks: list[list[tuple[int, int]]]) -> dict[str, Any]:
        libraries = [self._libraries.find(*module) for module in modules]
        known: dict[tuple[int, int], Located | None] = {}
        rows = []
        for stack in stacks:
            row = []
            for number, (index, offset) in enumerate(stack):
                library = libraries[index] if 0 <= index < len(libraries) else None
                if (index, offset) not in known:
                    known[index, offset] = None if library is None else library.locate(offset)
                name = modules[index][0] if library is not None else "<unknown>"
                row.append({"frame": number, "module": name, **_frame(offset, known[index, offset])})
            rows.append(row)
        pairs = zip(modules, libraries, strict=True)
        found = {f"{name}/{key}": library is not None for (name, key), library in pairs}
        return {"stacks": rows, "found_modules": found}

    def _source(self, request: dict[str, Any]) -> dict[str, Any]:
        library, offset = self._place(request, "moduleOffset")
        path = _text(request, "file")
        located = library.locate(offset)
        if located is None or path not in [frame.path for frame in located.frames]:
            raise SymbolError(f"{path} is not a source file of the code at {offset:#x}")
        session = self._session
        sources = self._libraries.sources(library, session.source_dirs, by_build_id=session.follow != "none")
        found = sources.get(path)
        if found is None:
            raise SymbolError(f"{path} was not found: --source-dir DIR names the directory of the source files")
        text = "\n".join(found.lines)
        return {"symbolsLastModified": None, "sourceLastModified": None, "file": path, "source": text}

    def _assembly(self, request: dict[str, Any]) -> dict[str, Any]:
        library, offset = self._place(request, "startAddress")
        size = _offset(request, "size")
        code = library.code(offset)
        if code is None:
            raise SymbolError(f"no machine code at {offset:#x} of {_text(request, 'debugName')}")
        end = None if request.get("continueUntilFunctionEnd") is True else offset + size
        first = offset - code.start
        syntaxes = [code.instructions(intel=True), code.instructions(intel=False)]
        texts = [{one.offset: one.text for one in each} for each in syntaxes]
        arch = _core.instruction_set(code.machine)
        is_x86 = arch.startswith("x86")
        rows = [
            [one.offset - first, one.text, *([texts[1].get(one.offset, one.text)] if is_x86 else [])]
            for one in syntaxes[0]
            if one.offset >= first and (end is None or code.start + one.offset < end)
        ]
        return {
            "startAddress": hex_text(offset),
            "size": hex_text(size if end is not None else len(code.data) - first),
            "arch": ARCHITECTURES.get(arch, arch),
            "syntax": ["Intel", "AT&T"] if is_x86 else ["default"],
            "instructions": rows,
        }

    def _place(self, request: dict[str, Any], name: str) -> tuple[Library, int]:
        """The library of a request, and an offset in it."""
        debug_name, debug_id = _text(request, "debugName"), _text(request, "debugId")
        library = self._libraries.find(debug_name, debug_id)
        if library is None:
            raise SymbolError(f"the recording has no code of {debug_name} with id {debug_id}")
        return library, _offset(request, name)


def _request(body: bytes) -> dict[str, Any]:
    request = json.loads(body)
    if not isinstance(request, dict):
        raise SymbolError("the request is not an object")
    return request


def _job(job: Any) -> tuple[list[tuple[str, str]], list[list[tuple[int, int]]]]:
    """Modules and stacks of a job, checked."""
    if not isinstance(job, dict):
        raise SymbolError("a job is not an object")
    modules, stacks = job.get("memoryMap"), job.get("stacks")
    if not isinstance(modules, list) or not isinstance(stacks, list):
        raise SymbolError("a job has no memoryMap, or no stacks")
    if not all(_is_pair(one, str) for one in modules):
        raise SymbolError("memoryMap is not a list of names and ids")
    if not all(isinstance(stack, list) and all(_is_pair(one, int) for one in stack) for stack in stacks):
        raise SymbolError("stacks are not lists of module numbers and offsets")
    return [(name, key) for name, key in modules], [[(index, at) for index, at in stack] for stack in stacks]


def _is_pair(value: Any, of: type) -> bool:
    """Whether a value is a list of two of a type; offsets have at most 64 bits."""
    is_pair = isinstance(value, list) and len(value) == 2 and all(type(one) is of for one in value)
    return is_pair and (of is str or all(-(2**63) <= one < 2**63 for one in value))


def _frame(offset: int, located: Located | None) -> dict[str, Any]:
    frame: dict[str, Any] = {"module_offset": hex_text(max(offset, 0))}
    if located is None or offset < located.start:
        return frame
    outer, *inner = located.frames
    frame |= _position(outer.function, outer.path, outer.line)
    frame["function_offset"] = hex_text(offset - located.start)
    if located.size_bytes is not None:
        frame["function_size"] = hex_text(located.size_bytes)
    if inner:
        frame["inlines"] = [_position(one.function, one.path, one.line) for one in reversed(inner)]
    return frame


def _position(function: str | None, path: str | None, line: int | None) -> dict[str, Any]:
    values = {"function": function, "file": path, "line": line or None}
    return {name: value for name, value in values.items() if value is not None}


def _text(request: dict[str, Any], name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str):
        raise SymbolError(f"{name} is missing")
    return value


def _offset(request: dict[str, Any], name: str) -> int:
    text = _text(request, name)
    try:
        value = int(text, 16) if len(text) < 20 else -1
    except ValueError:
        value = -1
    if not 0 <= value < 2**63:
        raise SymbolError(f"{name} is not an offset such as 0x5844")
    return value
