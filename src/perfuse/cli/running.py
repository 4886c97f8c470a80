"""Running a command: what it raises becomes a message and an exit code.

Imports no click unless a command fails: `plain_report` does without.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.environment import forget_stdout, prepare_streams
from perfuse.cli.exit_codes import describe_failure, is_out_of_memory
from perfuse.cli.signals import Stopped, received, report_end
from perfuse.errors import InternalError, OutOfMemory


def run_command(command: Callable[[], int], *, as_json: bool) -> int:
    """Runs a command and returns its exit code; where it was stopped or failed, the reason is printed."""
    prepare_streams()
    try:
        return command()
    except BrokenPipeError:
        forget_stdout()
        return exit_codes.CLOSED_PIPE
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        return _failed(error, as_json=as_json)


def _failed(error: BaseException, *, as_json: bool) -> int:
    """Prints why a command was stopped or failed, and returns the exit code."""
    import click

    if isinstance(error, KeyboardInterrupt | click.Abort):
        report_end("interrupted")
        return exit_codes.INTERRUPTED
    # A library that had the thread when the signal came may have raised its own error.
    stopped = error if isinstance(error, Stopped) else received()
    if stopped is not None:
        report_end(stopped.text)
        return stopped.exit_code
    if not isinstance(error, Exception):
        # A panic of another extension; one of Arrow's where Python has no memory for an object.
        error = OutOfMemory("not enough memory") if is_out_of_memory(error) else InternalError(str(error))
    return _report_failure(error, as_json=as_json)


def _report_failure(error: Exception, *, as_json: bool) -> int:
    """Prints what went wrong, and returns the exit code. With --json, a defect is a JSON document too."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        pass
    except OSError as unwritten:
        from perfuse.output.file import output_error

        error = output_error("standard output", unwritten)
        forget_stdout()
    failure = describe_failure(error)
    with contextlib.suppress(BrokenPipeError):
        console = Console(sys.stdout, sys.stderr)
        if failure.traceback:
            import traceback

            traceback.print_exception(error)
        if failure.exit_code == exit_codes.DEFECT and as_json:
            console.json(failure.as_json())
        console.note(failure.message, failure.hint)
    return failure.exit_code
