"""The actions of `perfuse fleet`."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.result import form_of_file, write_result
from perfuse.errors import UsageError
from perfuse.fleet.dataset import Fleet
from perfuse.fleet.selecting import Recordings, parse_recordings
from perfuse.reports import fleet as texts
from perfuse.reports.units import count_text, counted
from perfuse.value_class import as_dict

if TYPE_CHECKING:
    from perfuse.analysis.diff import Difference
    from perfuse.analysis.function_graph import FunctionGraph
    from perfuse.fleet.adding import AddResult
    from perfuse.fleet.inputs import FleetInput
    from perfuse.fleet.questions import FleetEvent

TEXT_LIMIT = 10


def add(console: Console, dataset: str, inputs: Sequence[str], **options: Any) -> int:
    """Reads recordings into the dataset; exit 1 if some could not be read."""
    from perfuse.cli.opening import object_files
    from perfuse.fleet.engines import engine_named, without_main_program
    from perfuse.fleet.inputs import inputs_of
    from perfuse.fleet.maintenance import compact
    from perfuse.memory import memory_bytes

    given = [*inputs, *_listed(options["from_list"])]
    if not given:
        raise click.UsageError("nothing to add: name files, directories, globs or URLs")
    fleet = _fleet(dataset, options)
    labels = _pairs(options["labels"], "--label")
    found = inputs_of(given, options["labels_from"])
    if options["workers"] is not None and options["workers"] < 1:
        raise click.UsageError(f"--workers {options['workers']}: there is at least one")
    memory = None if options["worker_memory"] is None else memory_bytes(options["worker_memory"])
    name = options["engine"]
    if options["dask"] and name not in (None, "dask"):
        raise click.UsageError(f"--dask local is --engine dask, not {name}")
    with without_main_program():
        engine = engine_named(
            "dask" if options["dask"] else name,
            len(found),
            num_workers=options["workers"],
            scheduler=options["scheduler"],
            memory=memory,
        )
        try:
            with console.progress() as progress:
                result = fleet.add(
                    found,
                    labels=labels,
                    engine=engine,
                    symbol_dirs=options["symbol_dirs"],
                    maps=object_files(options["maps"]),
                    debug_info=not options["no_debug_info"],
                    memory=memory,
                    retry_failed=options["retry_failed"],
                    keep_packs=options["keep_packs"],
                    progress=progress,
                )
        finally:
            engine.close()
    if not options["no_compact"]:
        compact(fleet)
    if options["as_json"]:
        console.json(_added_json(dataset, result))
    else:
        _print_added(console, dataset, result)
    return exit_codes.FINDINGS if result.failed else exit_codes.CLEAN


def _added_json(dataset: str, result: AddResult) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "added": result.num_added,
        "partial": result.added["partial"],
        "kept": result.kept,
        "replaced": result.replaced,
        "relabeled": result.relabeled,
        "failed": [{"input": one, "error_code": code, "error": error} for one, code, error in result.failed],
        "repeated_batches": result.repeated_batches,
        "seconds": round(result.seconds, 3),
    }


def _print_added(console: Console, dataset: str, result: AddResult) -> None:
    kept = f", {count_text(result.kept)} known" if result.kept else ""
    failed = f", {count_text(len(result.failed))} in quarantine" if result.failed else ""
    each = f", {1e3 * result.seconds / result.num_added:,.0f} ms each" if result.num_added else ""
    took = f"{result.seconds:.1f} s{each}"
    console.line(f"{dataset}: {counted(result.num_added, 'recording')} added{kept}{failed} ({took})")
    if result.relabeled:
        console.note(
            f"{counted(result.relabeled, 'known recording')} had other labels, which stay: content counts once",
            f"perfuse fleet query {shlex.quote(dataset)} 'SELECT title, labels FROM recordings' shows them",
        )
    if result.replaced:
        console.note(
            f"{counted(result.replaced, 'recording')} of some of the same files became part of these: content counts"
            " once"
        )
    if result.added["partial"]:
        console.note(f"{counted(result.added['partial'], 'recording')} of them lost data: `perfuse check` shows where")
    for text, _, error in result.failed[:TEXT_LIMIT]:
        console.note(error if error.startswith(f"{text}: ") else f"{text}: {error}")
    if result.failed:
        what = "it is" if len(result.failed) == 1 else "they are"
        console.note(f"{what} in quarantine", f"perfuse fleet status {shlex.quote(dataset)} lists all of them")


def status(console: Console, dataset: str, **options: Any) -> int:
    """Prints what the dataset contains."""
    from perfuse.fleet.status import status_of

    found = status_of(_fleet(dataset, options))
    document = {**as_dict(found), "files": {name: list(sizes) for name, sizes in found.files.items()}}
    return _print(console, options, document, lambda: texts.status_lines(found, console.style, _limit(options)))


def report(console: Console, dataset: str, **options: Any) -> int:
    """Prints functions, shares, calls or the heap of the selected recordings."""
    from perfuse.fleet import questions

    fleet, which = _fleet(dataset, options), parse_recordings(options["where"])
    limit = _limit(options)
    document: dict[str, Any]
    if options["calls"] and options["heap"]:
        raise click.UsageError("--calls and --heap are two reports: give one of them")
    if options["heap"]:
        _refuse(options, "--heap", "by", "event", "function")
        growth = questions.heap_growth(fleet, which, limit)
        return _print(
            console, options, {"heap": texts.json_rows(growth)}, lambda: texts.heap_lines(growth, console.style)
        )
    if options["calls"]:
        label = options["by"] or "host"
        calls = questions.call_percentiles(fleet, which, options["function"], label)
        document = {"by": label, "calls": texts.json_rows(calls[: limit or None])}
        return _print(console, options, document, lambda: texts.call_lines(calls, label, limit, console.style))
    event = _event(console, fleet, which, options["event"])
    number = fleet.selected(which)
    rows, num_functions = questions.top_functions(
        fleet, which, event, order=options["order"], function=options["function"], limit=limit
    )
    document = {
        "where": which.text,
        "recordings": number,
        "event": as_dict(event),
        "sort": options["order"],
        "num_functions": num_functions,
        "functions": texts.json_rows(rows),
    }
    lines = [*texts.top_lines(event, number, rows, num_functions, console.style, selection=which.text)]
    if options["by"]:
        keys = [one.function_hash for one in rows]
        shares = questions.share_by(
            fleet, which, event, keys, options["by"], order=options["order"], unit=options["unit"]
        )
        document |= {"by": options["by"], "unit": options["unit"]}
        document["functions"] = [{**as_dict(one), "shares": texts.json_rows(shares[one.function_hash])} for one in rows]
        lines += texts.share_lines(rows, shares, options["by"], options["unit"], console.style)
    return _print(console, options, document, lambda: lines)


def query(console: Console, dataset: str, arguments: Sequence[str], **options: Any) -> int:
    """Prints the rows of SQL over the dataset."""
    if len(arguments) != 1:
        raise click.UsageError("query needs one argument, the SQL")
    path, form = options["output"], "json" if options["as_json"] else options["form"]
    form = form or (form_of_file(path) if path and path != "-" else "table")
    relation = _fleet(dataset, options).sql(arguments[0], where=options["where"])
    if relation is None:
        raise click.UsageError("the SQL returns no rows: it must be a SELECT, or FROM a view")
    write_result(console, relation, form, None if path == "-" else path, options["limit"])
    return exit_codes.CLEAN


def diff(console: Console, dataset: str, sides: Sequence[str], **options: Any) -> int:
    """Compares two selections, or names the first build of each change."""
    from perfuse.fleet import comparing
    from perfuse.fleet.questions import select_event

    fleet, both = _fleet(dataset, options), parse_recordings(options["where"])
    limit = _limit(options)
    if options["since"] is not None or not sides:
        if sides:
            raise click.UsageError("diff takes two selections, or --since, which compares all builds after one")
        _refuse(options, "--since", "normalize", "output")
        label = options["by"] or "build"
        within = options["within"]
        found = comparing.steps_since(fleet, both, options["since"], label=label, within=within, event=options["event"])
        _note_others(console, fleet, both, found.event)
        document = {
            "event": as_dict(found.event),
            "by": label,
            "since": options["since"],
            "within": within,
            "values": [{"value": value, "recordings": number} for value, number in found.values],
            "num_boundaries": found.num_boundaries,
            "num_tested": found.num_tested,
            "normalize": found.normalize,
            "steps": texts.json_rows(found.steps[: limit or None]),
        }
        if not found.num_boundaries:
            console.note(
                f"no {label} has enough recordings before it and from it on to distinguish a change from noise",
                f"add more recordings of each {label}; two of them are compared by `perfuse fleet diff`"
                f" {shlex.quote(dataset)} {label}=… {label}=…",
            )
        elif not found.num_tested:
            console.note(
                "no function has enough samples for a test", "record longer or more often, and add those recordings"
            )
        return _print(
            console, options, document, lambda: texts.steps_lines(found, label, limit, console.style, within=within)
        )
    if len(sides) != 2:
        raise click.UsageError("diff takes two selections: build=41 build=42")
    _refuse(options, "two selections", "by", "within")
    selections = [both.also(parse_recordings(one)) for one in sides]
    event = select_event(fleet, selections[0], options["event"])
    graphs = [_graphs(console, fleet, one, event, nodes=options["output"] is not None) for one in selections]
    found_difference = comparing.difference(graphs[0], graphs[1], normalize=options["normalize"])
    return _print_difference(console, found_difference, [one.text for one in selections], options)


def check(console: Console, dataset: str, inputs: Sequence[str], **options: Any) -> int:
    """Compares new recordings with those of the dataset; exit 1 if a function grew beyond the noise."""
    from perfuse.fleet import comparing
    from perfuse.fleet.inputs import inputs_of
    from perfuse.fleet.questions import select_event
    from perfuse.fleet.work import identities_of

    if not inputs:
        raise click.UsageError("check needs a new recording: perfuse fleet check DATASET perf.data")
    fleet, which = _fleet(dataset, options), parse_recordings(options["against"])
    given = inputs_of(inputs)
    # A recording that was added before it is checked would be compared with itself.
    own = fleet.known_among([key for one in given for key in identities_of(one, fleet.store.options)])
    if own:
        fleet.selected(which)
        which = which.without(own)
        if not fleet.count(which):
            hint = f"`perfuse fleet add {shlex.quote(dataset)} FILE...` adds recordings to compare with"
            raise UsageError(f"no recording of {dataset} is {which.text!r}, but for the new one", hint=hint)
        console.note(f"{counted(len(own), 'new recording')} in the dataset already, compared with the others only")
    event = select_event(fleet, which, options["event"])
    base = _graphs(console, fleet, which, event, nodes=True)
    if len(base) < 2:
        raise UsageError(
            f"{which.text!r} is one recording: the noise between recordings is not known",
            hint=f"`perfuse fleet add {shlex.quote(dataset)} FILE...` adds recordings to compare with",
        )
    new = _new_graphs(given, event, options)
    found = comparing.difference(base, new, normalize=options["normalize"])
    beyond = comparing.beyond_noise(found)
    path = options["output"] or "check.html"
    _write_page(found, (which.text, "+".join(inputs)), path)
    document = {
        "against": which.text,
        "recordings": len(base),
        "new": len(new),
        "event": event.name,
        "normalize": found.options.normalization.method,
        "level": found.options.level,
        "noise": found.noise,
        "num_tested": found.num_tested,
        "passes": not beyond,
        "grown": [
            {
                "name": one.change.named.name,
                "module": one.change.named.module,
                "change": one.change.figures["self"].ratio,
                "low": one.change.figures["self"].low,
                "high": one.change.figures["self"].high,
                "p": one.p,
            }
            for one in beyond
        ],
        "page": path,
    }
    lines = texts.check_lines(beyond, found, len(base), _limit(options), console.style)
    _print(console, options, document, lambda: lines)
    if path != "-":
        console.note(f"flame graph of both sides: {path}")
    return exit_codes.FINDINGS if beyond else exit_codes.CLEAN


def flame(console: Console, dataset: str, **options: Any) -> int:
    """Draws the stacks of all selected recordings."""
    from perfuse.fleet.stacks import collapsed_profile
    from perfuse.pictures.flame_graph import flame_target

    path = options["output"]
    if path is None:
        raise click.UsageError("flame needs a file to write: -o flame.html")
    fleet, which = _fleet(dataset, options), parse_recordings(options["where"])
    event = _event(console, fleet, which, options["event"])
    with collapsed_profile(fleet, which, event) as profile:
        profile.export(path, to="html" if path == "-" else flame_target(path))
    if path != "-":
        console.note(f"wrote {path}")
    return exit_codes.CLEAN


def find(console: Console, dataset: str, arguments: Sequence[str], **options: Any) -> int:
    """Lists the recordings that contain a function or a chain of calls; exit 1 if there is none."""
    from perfuse.fleet.questions import find_recordings

    if len(arguments) != 1:
        raise click.UsageError("find needs one argument: a function, or 'main > parse'")
    fleet, which = _fleet(dataset, options), parse_recordings(options["where"])
    event = _event(console, fleet, which, options["event"])
    rows, limit = find_recordings(fleet, which, event, arguments[0]), _limit(options)
    document = {
        "event": as_dict(event),
        "num_recordings": len(rows),
        "recordings": texts.json_rows(rows[: limit or None]),
    }
    _print(console, options, document, lambda: texts.found_lines(rows, event, limit, console.style))
    return exit_codes.CLEAN if rows else exit_codes.FINDINGS


def open_recording(console: Console, dataset: str, arguments: Sequence[str], **options: Any) -> int:
    """Prints the files of a recording, and the command that shows it; exit 1 if neither they nor its saved profile are
    here."""
    from perfuse.fleet.identities import file_sha256
    from perfuse.fleet.inputs import is_url
    from perfuse.fleet.status import recording_named

    if len(arguments) != 1:
        raise click.UsageError("open needs one argument: the beginning of a recording's identity")
    fleet = _fleet(dataset, options)
    key, inputs, pack = recording_named(fleet, arguments[0])
    states = []
    for one in inputs:
        path = one["path"]
        if is_url(path):
            states.append("remote")
        elif Path(path).is_dir():
            states.append("directory")
        elif not Path(path).is_file():
            states.append("missing")
        else:
            states.append("same" if file_sha256(path) == one["sha256"] else "changed")
    is_gone = bool({"missing", "changed"} & set(states))
    saved = None if pack is None else _saved_profile(fleet, pack, options["output"])
    if saved is None and options["output"] is not None:
        raise click.UsageError(f"no saved profile of {key} is kept: perfuse fleet add --keep-packs keeps one")
    shown = [saved] if saved is not None and (is_gone or options["output"]) else [one["path"] for one in inputs]
    command = f"perfuse view {' '.join(map(shlex.quote, shown))}"
    found = [{**one, "state": state} for one, state in zip(inputs, states, strict=True)]
    document = {"recording_id": key, "inputs": found, "pack": saved, "command": command}
    _print(console, options, document, lambda: texts.recording_lines(key, found, saved, command, console.style))
    return exit_codes.FINDINGS if is_gone and saved is None else exit_codes.CLEAN


def _saved_profile(fleet: Fleet, pack: str, output: str | None) -> str:
    """Where the saved profile of a recording is; with `output`, it is copied there."""
    from perfuse.fleet.packs import pack_path
    from perfuse.output.file import output_file
    from perfuse.output.temporary import temporary_directory

    if output is None:
        return f"{fleet.uri}/{pack}"
    with (
        temporary_directory() as directory,
        pack_path(fleet.store, pack, directory).open("rb") as file,
        output_file(Path(output)) as out,
    ):
        shutil.copyfileobj(file, out)
    return output


def remove(console: Console, dataset: str, **options: Any) -> int:
    """Removes recordings, or inputs from the quarantine."""
    from perfuse.fleet import editing

    if not options["where"] and not options["failed"]:
        raise click.UsageError("remove needs --where, which recordings; --where 'since 1970-01-01' is all of them")
    done = editing.remove(_fleet(dataset, options), options["where"], failed=options["failed"])
    what = "input" if options["failed"] else "recording"
    place = " from the quarantine" if options["failed"] else ""
    text = f"{dataset}: {counted(done.num_changed, what)} removed{place}"
    _print(console, options, {"dataset": dataset, "removed": done.num_changed}, lambda: [text])
    if not options["failed"] and not options["as_json"]:
        console.note("their rows are stored until they are a day old", f"perfuse fleet gc {shlex.quote(dataset)}")
    return exit_codes.CLEAN


def label(console: Console, dataset: str, **options: Any) -> int:
    """Gives recordings other labels."""
    from perfuse.fleet import editing
    from perfuse.fleet.maintenance import compact

    labels = _pairs(options["labels"], "--label")
    if not labels:
        raise click.UsageError("label needs --label NAME=VALUE; NAME= removes a label")
    if not options["where"]:
        raise click.UsageError("label needs --where, which recordings; --where 'since 1970-01-01' is all of them")
    fleet = _fleet(dataset, options)
    done = editing.relabel(fleet, options["where"], labels)
    compact(fleet)
    document = {"dataset": dataset, "selected": done.num_selected, "changed": done.num_changed}
    same = done.num_selected - done.num_changed
    others = f", {count_text(same)} had these labels" if same else ""
    text = f"{dataset}: {counted(done.num_changed, 'recording')} changed{others}"
    return _print(console, options, document, lambda: [text])


def gc(console: Console, dataset: str, **options: Any) -> int:
    """Merges small files and deletes what is not part of the dataset."""
    from perfuse.fleet.maintenance import clean

    if not 0 <= options["older_than"] < 1e6:
        raise click.UsageError(f"--older-than {options['older_than']} is not a number of hours")
    done = clean(_fleet(dataset, options), older_than_hours=options["older_than"], keep_files=options["keep_files"])
    attempts = f"rows of {counted(done.attempts, 'attempt')} deleted"
    merged = f"{count_text(done.files_before)} files became {count_text(done.files_after)}"
    packs = f", {counted(done.deleted_packs, 'saved profile')} deleted" if done.deleted_packs else ""
    text = f"{attempts}, {merged}, {counted(done.deleted_files, 'file')} deleted{packs}"
    return _print(console, options, as_dict(done), lambda: [text])


def files(console: Console, dataset: str, **options: Any) -> int:
    """Prints the Parquet files that are part of the dataset."""
    found = _fleet(dataset, options).files()
    return _print(console, options, found, lambda: (path for paths in found.values() for path in paths))


WITHOUT_ARGUMENTS: Mapping[str, Callable[..., int]] = {
    "status": status,
    "report": report,
    "flame": flame,
    "remove": remove,
    "label": label,
    "gc": gc,
    "files": files,
}
WITH_ARGUMENTS: Mapping[str, Callable[..., int]] = {
    "add": add,
    "query": query,
    "diff": diff,
    "find": find,
    "check": check,
    "open": open_recording,
}


def run_action(
    console: Console, action: str, dataset: str, arguments: Sequence[str], options: Mapping[str, Any]
) -> int:
    """Runs an action with its options, and returns the exit code."""
    if action in WITH_ARGUMENTS:
        return WITH_ARGUMENTS[action](console, dataset, arguments, **options)
    if arguments:
        raise click.UsageError(f"{action} takes no argument {arguments[0]!r}")
    return WITHOUT_ARGUMENTS[action](console, dataset, **options)


def _print(console: Console, options: Mapping[str, Any], document: Any, lines: Callable[[], Any]) -> int:
    if options["as_json"]:
        console.json(document)
    else:
        console.lines(lines())
    return exit_codes.CLEAN


def _event(console: Console, fleet: Fleet, which: Recordings, name: str | None) -> FleetEvent:
    """The event of a name, or that of most recordings."""
    from perfuse.fleet.questions import select_event

    event = select_event(fleet, which, name)
    _note_others(console, fleet, which, event)
    return event


def _note_others(console: Console, fleet: Fleet, which: Recordings, event: FleetEvent) -> None:
    """States how many of the selected recordings do not have the event, and what they have."""
    from perfuse.fleet.questions import events_of

    found = events_of(fleet, which)
    without = fleet.count(which) - sum(one.num_recordings for one in found if one.name == event.name)
    if without:
        what = which.text or "all recordings"
        others = ", ".join(dict.fromkeys(one.name for one in found if one.name != event.name))
        hint = f"--event names another one: {others}" if others else "`perfuse fleet report --heap` is for heaps"
        console.note(f"{what}: {counted(without, 'recording')} without {event.name}, which do not count here", hint)


def _graphs(
    console: Console, fleet: Fleet, which: Recordings, event: FleetEvent, *, nodes: bool
) -> list[FunctionGraph]:
    from perfuse.fleet.comparing import MOST_RUNS, graphs_of

    number = fleet.selected(which)
    graphs = graphs_of(fleet, which, event, nodes=nodes)
    _note_others(console, fleet, which, event)
    if not graphs:
        raise UsageError(
            f"no recording of {which.text!r} has event {event.name}", hint="--event names one that both sides have"
        )
    if number > MOST_RUNS and len(graphs) == MOST_RUNS:
        console.note(f"{which.text or 'all'}: the last {MOST_RUNS} of {counted(number, 'recording')} are compared")
    return graphs


def _new_graphs(inputs: Sequence[FleetInput], event: FleetEvent, options: Mapping[str, Any]) -> list[FunctionGraph]:
    import perfuse
    from perfuse.analysis.function_graph import function_graph
    from perfuse.cli.opening import object_files

    graphs = []
    reading: dict[str, Any] = {
        "symbol_dirs": options["symbol_dirs"],
        "maps": object_files(options["maps"]),
        "debug_info": not options["no_debug_info"],
    }
    for one in inputs:
        with perfuse.fuse(*one.files, **reading) as profile:
            graph = function_graph(profile, event.name, nodes=True)
            # Functions of a dataset are known by name, module and path.
            functions = {
                key: replace(function, identity=replace(function.identity, line=None, column=None))
                for key, function in graph.functions.items()
            }
            graphs.append(replace(graph, functions=functions, unsampled=()))
    return graphs


def _print_difference(console: Console, found: Difference, titles: Sequence[str], options: Mapping[str, Any]) -> int:
    from perfuse.reports.diff import diff_lines, diff_report

    rows = replace(diff_report(_compared(found, titles), found), limit=_limit(options))
    if options["output"] is not None:
        _write_page(found, titles, options["output"])
    if options["as_json"]:
        console.json(rows.as_json())
    elif options["output"] != "-":
        console.lines(diff_lines(rows, console.style))
    if options["output"] not in (None, "-"):
        console.note(f"wrote {options['output']}")
    return exit_codes.CLEAN


def _compared(found: Difference, titles: Sequence[str]) -> Any:
    from perfuse.reports.compared_runs import ComparedRun

    return tuple(
        [ComparedRun(title, []) for _ in side.runs] for title, side in zip(titles, (found.base, found.new), strict=True)
    )


def _write_page(found: Difference, titles: Sequence[str], path: str) -> None:
    from perfuse.analysis.diff_tree import stack_difference
    from perfuse.exporters.diff_html import write_page
    from perfuse.reports.diff import diff_report

    write_page(diff_report(_compared(found, titles), found, stack_difference(found, "total")), path)


def _fleet(dataset: str, options: Mapping[str, Any]) -> Fleet:
    return Fleet(dataset, _pairs(options["store_options"], "--store-option"))


def _pairs(texts_of: Sequence[str], option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts_of:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise click.UsageError(f"{option} {text!r}: write NAME=VALUE")
        if pairs.setdefault(name, value) != value:
            raise click.UsageError(f"{option} {name} has two values: {pairs[name]!r} and {value!r}")
    return pairs


def _listed(path: str | None) -> list[str]:
    if path is None:
        return []
    text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    return [str(Path(line).expanduser()) for line in text.splitlines() if line.strip()]


def _limit(options: Mapping[str, Any]) -> int | None:
    given: int | None = options["limit"]
    if given is None:
        return None if options["as_json"] else TEXT_LIMIT
    return given or None


def _refuse(options: Mapping[str, Any], what: str, *names: str) -> None:
    for name in names:
        if options[name] is not None:
            raise click.UsageError(f"{what} takes no --{name}")
