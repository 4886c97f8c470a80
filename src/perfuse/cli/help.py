"""`perfuse help`"""

from __future__ import annotations

import click

from perfuse.cli.console import Console
from perfuse.cli.verbs import VERBS, verb
from perfuse.errors import ExportError, UsageError, require_known


@verb("help", examples=["perfuse help report", "perfuse help --man man1"])
@click.argument("name", required=False, metavar="[VERB]")
@click.option("--man", "man_directory", metavar="DIR", help="Write a manual page for perfuse and for each verb to DIR.")
def command(console: Console, name: str | None, man_directory: str | None) -> None:
    """Without a verb, shows the help of perfuse."""
    from perfuse.cli.app import context_of

    if man_directory is not None:
        if name is not None:
            raise UsageError(f"--man writes the pages of all verbs, not of {name} alone")
        _write_manual(console, man_directory)
        return
    if name is not None:
        require_known(name, list(VERBS), "verb")
    console.line(context_of(name).get_help())


def _write_manual(console: Console, directory: str) -> None:
    from pathlib import Path

    from perfuse.cli.manual import pages
    from perfuse.output.file import output_file

    made = pages()
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"cannot make directory {directory}: {error.strerror or error}", path=directory) from error
    for name, text in made.items():
        with output_file(Path(directory, name)) as out:
            out.write(text.encode())
    console.note(f"wrote {len(made)} manual pages to {directory}", f"man -l {directory}/perfuse.1")
