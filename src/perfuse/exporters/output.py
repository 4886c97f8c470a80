"""Writing a profile to a file, a directory or a stream; files appear under their names only when complete."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from perfuse.errors import UsageError
from perfuse.exporters.contents import note_what_is_missing
from perfuse.exporters.registry import COLLECTORS, Output, Target, target_for, target_named
from perfuse.exporters.source import Progress, Source
from perfuse.output.file import file_names, output_directory, output_file, output_files
from perfuse.output.terminal import standard_output


def export(
    profile: Source,
    to_path: str | os.PathLike[str] | IO[bytes],
    to: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> tuple[str, ...]:
    """Writes a profile in another tool's format.

    Args:
        profile: The profile.
        to_path: A file name, `-` for standard output, a binary file object, or the address of a collector
            (`otlp+http://HOST:PORT`), which gets OTLP profiles. A name that ends in `.gz` or
            `.zst` is compressed. A target that can write a directory does so when the name is of a directory or ends
            in `/`.
        to: The target's name; by default the suffix of the file name decides.
        progress: Called with the name of the current step and the completed share (0 to 1), by slow targets.
        options: Options of the target: see its exporter.

    Returns:
        The files that were written, the requested one last; none for a stream.

    Raises:
        UsageError: There is no such target or option, or the file name matches no target.
        ExportError: The profile has no data for this target, or the file cannot be written or sent.
    """
    if not isinstance(to_path, str | os.PathLike):
        target = _target(to, None)
        if "file" not in target.outputs:
            raise _unsupported_output(target, "a file object", path=None)
        write = _writer(target, "file", options, progress)
        write(profile, to_path)
        return ()
    name = os.fspath(to_path)
    if name.startswith(COLLECTORS):
        return _send(profile, name, to, progress, options)
    target = _target(to, name)
    path = Path(name)
    output = _output(target, name, path)
    write = _writer(target, output, options, progress)
    if name == "-":
        out = standard_output()
        write(profile, out)
        out.flush()
        return ()
    if output == "directory":
        with output_directory(path) as unfinished:
            write(profile, unfinished)
            names = file_names(unfinished)
        return tuple(str(path / file) for file in names)
    if output == "files":
        with output_files(path) as unfinished:
            write(profile, unfinished, path.resolve())
            names = file_names(unfinished, last=path.resolve().name)
        beside = path.resolve() if path.is_symlink() else path
        return tuple(str(beside.with_name(file)) for file in names)
    with output_file(path) as out:
        write(profile, out)
    return (name,)


def _send(
    profile: Any, url: str, to: str | None, progress: Progress | None, options: dict[str, Any]
) -> tuple[str, ...]:
    """Sends a profile to a collector; no file is written."""
    from perfuse.exporters.otlp.sending import send

    if to not in (None, "otlp"):
        raise UsageError(f"{url} takes OTLP profiles, not {to}", field="to", hint="leave out --to, or to=")
    for option in options.keys() - {"times"}:
        raise UsageError(f"what is sent has no option {option!r}", field=option)
    send(profile, url, times=options.get("times", True), progress=progress)
    note_what_is_missing(profile, "OTLP profiles", target_named("otlp").contents)
    return ()


def _target(to: str | None, name: str | None) -> Target:
    if to is not None:
        return target_named(to)
    if name is None or name == "-":
        raise UsageError("the format of a stream must be given", field="to", hint="name the target with to=")
    return target_for(name)


def _output(target: Target, name: str, path: Path) -> Output:
    if name != "-":
        if name.endswith("/") or path.is_dir():
            if "directory" in target.outputs:
                return "directory"
            raise _unsupported_output(target, f"directory {name}", path=name)
        if target.outputs == ("files",) and path.exists() and not path.is_file():
            raise _unsupported_output(target, f"device {name}", path=name)
        return target.outputs[0]
    if "file" in target.outputs:
        return "file"
    raise _unsupported_output(target, "standard output", path=name)


def _unsupported_output(target: Target, to: str, path: str | None) -> UsageError:
    hint = {"file": "give a file", "directory": "give a directory", "files": "give a file name: others go beside it"}
    return UsageError(f"{target.name} cannot be written to {to}", path=path, field="path", hint=hint[target.outputs[0]])


def _writer(target: Target, output: Output, options: dict[str, Any], progress: Progress | None) -> Callable[..., None]:
    """The exporter's function, with its options."""
    parameters = target.options(output)
    for option in options:
        if option not in parameters:
            takes = f"it takes {', '.join(parameters)}" if parameters else "it takes none"
            raise UsageError(f"{target.name} has no option {option!r}", field=option, hint=takes)
    if target.accepts_progress(output):
        options = {**options, "progress": progress}
    write = target.writer(output)

    def write_and_note(profile: Any, *to: Any) -> None:
        write(profile, *to, **options)
        note_what_is_missing(profile, target.title, target.contents)

    return write_and_note
