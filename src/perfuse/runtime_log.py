"""What the runtime of a profile logged, as a Mono log."""

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

from perfuse import _core
from perfuse.errors import ExportError, UsageError
from perfuse.formats.mono_log import Written, kinds_like
from perfuse.runtime_rows import write_rows

if TYPE_CHECKING:
    from perfuse.profile import Profile


class RuntimeLog:
    """Writes what a profile selects of its Mono logs; `Profile.runtime_log` is one."""

    def __init__(self, profile: "Profile") -> None:
        self._profile = profile

    def write(
        self, out: IO[bytes], *, version: int | None = None, kinds: Iterable[str] | None = None, any_run: bool = False
    ) -> Written:
        """Writes one log: of Mono logs, as `perfuse.mono.convert` does; else of what other recorders told of
        allocations, calls and samples, as data version 17.

        Args:
            out: Where to.
            version: Data version, 1 to 17; that of the first log where not given.
            kinds: Only events of these names or patterns, and those that name something.
            any_run: Write logs of several runs as one.

        Raises:
            ExportError: The profile tells of nothing a log has, or its logs are not of one run.
            UsageError: There is no such data version or kind of event.
        """
        logs = [r for r in self._profile.recordings if r.format == "mono"]
        if not logs:
            if version not in (None, 17) or kinds is not None:
                raise ExportError(
                    "what no Mono logged is written as data version 17, whole", hint="convert the log that was written"
                )
            return write_rows(self._profile, out)
        selection = self._profile.selection
        wanted: _core._MonoWanted = {
            "version": version,
            "between_ns": selection.time_ns,
            "is_relative": False,
            "threads": None if selection.thread is None else [selection.thread],
            "kinds": None if kinds is None else kinds_like(kinds),
            "any_run": any_run,
        }
        try:
            return Written.of(_core.convert_mono([log._core for log in logs], out, wanted))
        except (ValueError, OverflowError) as error:
            raise UsageError(str(error), field="version") from error
