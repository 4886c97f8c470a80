"""Machine code and source lines of a function with the samples of the selection: what `perfuse annotate` reports."""

from typing import TYPE_CHECKING, Any

from perfuse.errors import UsageError
from perfuse.reports.names import source_place, where_texts
from perfuse.viewer.answers.parameters import Parameters
from perfuse.viewer.answers.selected import Selected, selected

if TYPE_CHECKING:
    from perfuse.analysis.annotation import Annotation, Compilation, Listing
    from perfuse.analysis.function_search import CodeFunction
    from perfuse.analysis.source_files import SourceFiles
    from perfuse.viewer.session import Session

MOST_TRIED = 40
"""Heaviest functions among which the first one with machine code is looked for."""
MOST_COMPILATIONS = 2000
"""Compilations that an answer lists; stubs of a runtime have more under one name."""
NO_CODE = "no function of the selection has machine code here"
NO_CODE_HINT = "JIT code is in dumps; code of programs is in their files: --symbols DIR names their directory"
NO_COMMAND = {"command": None, "command_note": "there is no code to annotate"}
BEFORE, AFTER = 3, 3
"""Lines of source text before the first and after the last line of the code."""
MOST_LINES = 5000
"""Lines of a source file that an answer has."""


def annotate(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """A function, its compilations, and the instructions of one of them.

    `function` is what `perfuse annotate` takes, by default the heaviest function with machine code; `compilation` is a
    number or handle. Where `function` means several, the answer has these as `choices`; where its code is not
    available, an empty list of them and a `message`.
    """
    part = selected(session, parameters)
    wanted, tier = parameters.text("function"), parameters.text("tier")
    number, intel = parameters.text("compilation"), parameters.choice("syntax", ("att", "intel")) == "intel"
    wanted = wanted or _heaviest(part)
    if wanted is None:
        return {"choices": [], "message": NO_CODE, "hint": NO_CODE_HINT, **NO_COMMAND}
    try:
        annotation = _annotation(part, wanted, tier, intel)
    except UsageError as error:
        if found := getattr(error, "found", None):
            places = where_texts(found, source_place)
            choices = [_choice(one, where) for one, where in zip(found, places, strict=True)]
            return {"choices": choices, "message": str(error), "hint": error.hint, **NO_COMMAND}
        # Not an error of the request: of many functions a recording has no code.
        return {"choices": [], "message": str(error), "hint": error.hint, **NO_COMMAND}
    compilation = annotation.hottest if number is None else annotation.compilation(number)
    key = ("listing", part.key, annotation.function.handle, tier, intel, compilation.number)
    listing = session.cached(key, lambda: annotation.listing(compilation))
    sources = _sources(session, annotation)
    from perfuse.exporters.annotation_page import page_data

    data = page_data(annotation, [listing], sources, opened=compilation.number)
    listed = data["compilations"]
    data["num_compilations"] = len(listed)
    if len(listed) > MOST_COMPILATIONS:
        data["compilations"] = _heaviest_of(listed, compilation)
    return {
        **data,
        "texts": _texts(listing, sources, annotation),
        **part.command("annotate", *_event(part), *_arguments(session, annotation, wanted, tier, number, intel)),
    }


def _annotation(part: Selected, wanted: str, tier: str | None, intel: bool) -> "Annotation":
    event = part.event if _event(part) else None
    key = ("annotation", part.key, wanted, tier, intel)
    make = lambda: part.profile.annotate(wanted, tier=tier, event=event, intel=intel)  # noqa: E731 - one line
    return part.session.cached(key, make)


def _event(part: Selected) -> list[str]:
    """The option that selects the event of the selection, where its samples are at instructions."""
    from perfuse.analysis.sampled import events

    sampled = [one.name for one in events(part.profile) if not one.is_sum] if part.profile.has_samples else []
    return ["--event", part.event] if part.event is not None and part.event in sampled else []


def _heaviest(part: Selected) -> str | None:
    """The function with the most weight that has machine code."""
    from perfuse.viewer.answers.functions import weights_of

    def make() -> str | None:
        weights = weights_of(part) if part.session.events() else None
        rows = [] if weights is None else weights.functions()
        for row in rows[:MOST_TRIED]:
            if row.function_id is None:
                continue
            try:
                return _annotation(part, f"f{row.function_id}", None, False).function.handle
            except UsageError:
                continue
        return _first_code(part)

    return part.session.cached(("heaviest-code", part.key), make)


def _first_code(part: Selected) -> str | None:
    """The largest JIT code, where there are no samples in any."""
    if not part.session.profile.has("code_objects"):
        return None
    query = "SELECT function_id FROM code_objects ORDER BY size_bytes DESC, code_object_id LIMIT 1"
    rows = part.session.profile.sql(query).fetchall()
    return f"f{rows[0][0]}" if rows else None


def _choice(one: "CodeFunction", where: str) -> dict[str, Any]:
    return {"handle": one.handle, "name": one.name, "where": where, "kind": one.kind, "module": one.module}


def _sources(session: "Session", annotation: "Annotation") -> "SourceFiles":
    from perfuse.analysis.source_files import SourceFiles

    paths = [one.path for one in session.profile.recordings]
    build_id = annotation.build_id
    make = lambda: SourceFiles(session.profile, session.source_dirs, build_id, paths, session.follow)  # noqa: E731
    return session.cached(("sources", build_id), make)


def _heaviest_of(rows: list[dict[str, Any]], shown: "Compilation") -> list[dict[str, Any]]:
    """Those with the most samples, and the one that is shown, by number."""
    ranked = sorted(rows, key=lambda row: (row["number"] != shown.number, -row["self_samples"], -row["total_samples"]))
    return sorted(ranked[:MOST_COMPILATIONS], key=lambda row: int(row["number"]))


def _texts(listing: "Listing", sources: "SourceFiles", annotation: "Annotation") -> dict[str, dict[str, Any]]:
    """The lines of source files that the code is of, with some around them."""
    lines: dict[str, set[int]] = {}
    for one in listing.instructions:
        if one.path and one.line:
            lines.setdefault(one.path, set()).add(one.line)
    function = annotation.function
    if function.path in lines and function.line:
        lines[function.path].add(function.line)
    found = {}
    for path, numbers in lines.items():
        source = sources.get(path)
        if source is None:
            continue
        first = max(min(numbers) - BEFORE, 1)
        last = min(max(numbers) + AFTER, len(source.lines), first + MOST_LINES - 1)
        texts = list(source.lines[first - 1 : last])
        found[path] = {"origin": source.origin, "first": first, "lines": texts, "is_cut": last < max(numbers)}
    return found


def _arguments(
    session: "Session", annotation: "Annotation", wanted: str, tier: str | None, number: str | None, intel: bool
) -> list[str]:
    function = annotation.function
    named = wanted == function.name and not wanted.startswith("-")
    arguments = [part for folder in session.source_dirs for part in ("--source-dir", folder)]
    arguments += ["--tier", tier] if tier is not None else []
    arguments += ["--compilation", number] if number is not None else []
    arguments += ["--syntax", "intel"] if intel else []
    return [*arguments, function.name if named else function.handle]
