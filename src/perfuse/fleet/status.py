"""What a dataset contains, and what could not be read."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfuse.errors import UsageError
from perfuse.fleet.layout import OF_RECORDINGS, TABLES

if TYPE_CHECKING:
    from perfuse.fleet.dataset import Fleet


@dataclass(frozen=True, slots=True)
class QuarantinedInput:
    """An input that could not be read.

    Attributes:
        recording_id: Its identity.
        files: Its files.
        error_code: A rule, or the kind of error.
        error: The message.
        added: When it was tried, in nanoseconds since 1970-01-01 (UTC).
    """

    recording_id: str
    files: tuple[str, ...]
    error_code: str
    error: str
    added: int

    @property
    def text(self) -> str:
        """Its files, as `fleet add` takes them; bytes that are not UTF-8 are `\\xNN`."""
        return "+".join(self.files)

    @property
    def is_refused_name(self) -> bool:
        """Whether the name of a file is not UTF-8, so that no command takes it."""
        return self.error_code == "UsageError" and self.error.endswith(": not UTF-8")


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """The state of a dataset.

    Attributes:
        uri: Its folder or prefix.
        num_recordings: Recordings that count.
        num_partial: Those of which recorded data is lost.
        num_failed: Inputs in quarantine.
        num_packs: Recordings of which the dataset keeps a saved profile.
        input_bytes: Size of the files of the recordings.
        first_day: Earliest day; None without recordings.
        last_day: Latest day.
        size_bytes: Size of its Parquet files.
        num_files: Their number.
        files: Number and size by table.
        num_unnamed: Attempts whose rows are stored and that no recording names: of workers that died, or were slow.
        groups: `(service, build, hosts, recordings, first day, last day)`.
        quarantine: What is in quarantine, the latest first.
    """

    uri: str
    num_recordings: int
    num_partial: int
    num_failed: int
    num_packs: int
    input_bytes: int
    first_day: str | None
    last_day: str | None
    size_bytes: int
    num_files: int
    files: dict[str, tuple[int, int]]
    num_unnamed: int
    groups: list[tuple[str | None, str | None, int, int, str, str]]
    quarantine: list[QuarantinedInput]

    @property
    def retry_command(self) -> str:
        """The command that reads what is in quarantine again; files whose names are not UTF-8 get others first."""
        shown = self.quarantine[:3]
        renamed = {one.text: re.sub(_ESCAPED_BYTE, r"_\1", one.text) for one in shown if one.is_refused_name}
        moves = "".join(f"mv -n {_in_bash(old)} {shlex.quote(new)} && " for old, new in renamed.items())
        inputs = " ".join(shlex.quote(renamed.get(one.text, one.text)) for one in shown)
        more = " ..." if len(self.quarantine) > 3 else ""
        return f"{moves}perfuse fleet add {shlex.quote(self.uri)} {inputs}{more} --retry-failed"


_ESCAPED_BYTE = r"\\x([0-9a-f]{2})"


def _in_bash(text: str) -> str:
    r"""A name with bytes as `\xNN`, as bash and zsh read it."""
    parts = re.split(r"(\\x[0-9a-f]{2})", text)
    plain = (part if place % 2 else part.replace("\\", "\\\\").replace("'", "\\'") for place, part in enumerate(parts))
    return f"$'{''.join(plain)}'"


def status_of(fleet: Fleet) -> FleetStatus:
    """The state of a dataset."""
    ((number, partial, packs, size, first, last),) = fleet.rows(
        "SELECT count(*), count(*) FILTER (state = 'partial'), count(pack), coalesce(sum(input_bytes), 0)::BIGINT,"
        " min(day), max(day) FROM recordings"
    )
    groups = fleet.rows(
        "SELECT service, build, count(DISTINCT host), count(*), min(day), max(day) FROM recordings GROUP BY ALL"
        " ORDER BY max(start_ns) DESC, 1, 2"
    )
    failed = fleet.rows(
        "SELECT recording_id, title, inputs, error_code, error, added_ns FROM quarantine ORDER BY added_ns DESC, title"
    )
    files = {name: _sizes(fleet.store.table(name)) if fleet.store.has(name) else (0, 0) for name in TABLES}
    return FleetStatus(
        fleet.uri,
        number,
        partial,
        len(failed),
        packs,
        size,
        first,
        last,
        sum(size for _, size in files.values()),
        sum(count for count, _ in files.values()),
        files,
        len(unnamed_attempts(fleet)),
        groups,
        [QuarantinedInput(key, _files(title, inputs), *rest) for key, title, inputs, *rest in failed],
    )


def unnamed_attempts(fleet: Fleet) -> list[str]:
    """Attempts whose rows are stored and that no recording names."""
    union = " UNION ".join(f"SELECT DISTINCT attempt_id FROM all_{name}" for name in OF_RECORDINGS)
    rows = fleet.rows(f"SELECT attempt_id FROM ({union}) ANTI JOIN recordings USING (attempt_id) ORDER BY 1")
    return [attempt for (attempt,) in rows]


def recording_named(fleet: Fleet, beginning: str) -> tuple[str, list[dict[str, Any]], str | None]:
    """The recording whose identity begins with a text, its inputs, and its saved profile as a path below the dataset.

    Raises:
        UsageError: There is none, or several.
    """
    rows = fleet.head.rows(
        "SELECT recording_id, inputs, pack FROM recordings WHERE starts_with(recording_id, ?) LIMIT 2",
        [beginning.lower()],
    )
    if len(rows) != 1:
        what = "several recordings begin with" if rows else "no recording begins with"
        raise UsageError(f"{what} {beginning!r}", hint="`fleet find` and `fleet report` show identities of recordings")
    return rows[0][0], json.loads(rows[0][1]), rows[0][2]


def _files(title: str, inputs: str) -> tuple[str, ...]:
    return tuple(one["path"] for one in json.loads(inputs)) or (title,)


def _sizes(table: Any) -> tuple[int, int]:
    from arro3.core import Table as ArrowTable

    actions = ArrowTable.from_arrow(table.get_add_actions(flatten=True))
    sizes = actions["size_bytes"].to_pylist()
    return len(sizes), sum(sizes)
