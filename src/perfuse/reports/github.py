"""What `check` found as commands of a GitHub workflow: the runner shows each as an annotation of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfuse.output.terminal import escaped
from perfuse.reports.checked_files import CheckedFile, by_rule, located_message
from perfuse.reports.units import counted

_LEVELS = {"warning": "warning", "data_loss": "error", "error": "error"}
"""Level of an annotation by severity. Notes have none: a step shows at most ten of each level."""


def workflow_commands(files: Sequence[CheckedFile]) -> Iterator[str]:
    """A command for each rule that is violated in a file, with its first place and its section of the specification."""
    from perfuse.diagnostics import explain

    for file in files:
        if file.unreadable:
            yield _command("error", file.path, "cannot be read", file.unreadable)
        for found in by_rule(file.others):
            rule = explain(found[0].code)
            if rule.severity not in _LEVELS:
                continue
            section = f" (section {rule.section} of the specification)" if rule.section else ""
            number = counted(sum(one.count for one in found), "time")
            message = f"{number}, first at {located_message(found[0])}{section}. {rule.action}"
            yield _command(_LEVELS[rule.severity], file.path, f"{rule.code} {rule.title}", message)


_IN_MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = _IN_MESSAGE | str.maketrans({":": "%3A", ",": "%2C"})
"""What would end a part of a command, as the runner reads it back."""


def _command(level: str, path: str, title: str, message: str) -> str:
    file, title = (escaped(text).translate(_IN_PROPERTY) for text in (path, title))
    return f"::{level} file={file},title={title}::{escaped(message).translate(_IN_MESSAGE)}"
