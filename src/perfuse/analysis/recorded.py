"""Whether a kind of data was recorded: without rows, nothing happened, or nothing was asked for."""

from collections.abc import Iterable, Sequence
from typing import Protocol

OTHER_RECORDERS = "other recorders contain it"
"""Of a format that does not contain a kind of data."""


class RecordedFile(Protocol):
    """An open file; `perfuse.Recording` is one."""

    def not_recorded(self, subject: str, tables: Iterable[str]) -> str | None:
        """How to record a kind of data that was not recorded; None where it was."""
        ...


class RecordedProfile(Protocol):
    """A profile; `perfuse.Profile` is one."""

    @property
    def recordings(self) -> Sequence[RecordedFile]:
        """Its files."""
        ...


def not_recorded(profile: RecordedProfile, subject: str, tables: Iterable[str]) -> str | None:
    """How to record a kind of data that no file of a profile contains; None where one does, even if nothing happened.

    Args:
        profile: The profile.
        subject: The kind of data: `allocations`, `locks`.
        tables: Tables that contain it.
    """
    tables = tuple(tables)
    reasons = [recording.not_recorded(subject, tables) for recording in profile.recordings]
    if None in reasons:
        return None
    return next((reason for reason in reasons if reason != OTHER_RECORDERS), OTHER_RECORDERS)


def why_no_samples(kinds: Iterable[str]) -> str:
    """Why a perf.data has no samples, by the kinds of its records."""
    kinds = set(kinds)
    if "PERF_RECORD_STAT" in kinds:
        return "these are counts of perf stat, which perf stat report prints"
    if kinds & {"PERF_RECORD_LOST", "PERF_RECORD_LOST_SAMPLES"}:
        return "the kernel lost records; fewer samples a second (-F), or a larger buffer (-m), lose less"
    return "the program ended early, or the event did not occur"
