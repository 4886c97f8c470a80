"""`report --group`: every event by function adds up to what an independent reader finds."""

from __future__ import annotations

import pytest

from perfuse.profile import Profile
from perfuse.reports.profile import build

from .kinds import Kind
from .outside import outside
from .stack_walk import by_stack, samples_of


@pytest.mark.truth(recording="*", path="report:group", source="sums over records, read by another program")
def test_weights_of_functions_add_up(kind: Kind, profile: Profile) -> None:
    group = build(profile, {"--group": True, "--limit": 0}).as_json()["group"]
    expected = {event: weight.total for event, weight in outside(kind.name).weights.items()}
    assert group["total"]["self_weights"] == expected
    sums = {event: sum(one["self_weights"][event] for one in group["functions"]) for event in expected}
    assert sums == expected
    assert group["ratios"] == []
    # Each function has what its stacks have, summed a sample at a time.
    [event] = expected
    named = {one["name"]: one["self_weights"][event] for one in group["functions"] if not one["name"].startswith("[")}
    walked: dict[str, int] = {}
    for stack, weight in by_stack(samples_of(profile.tables, event)).items():
        if stack and (name := stack[-1].name):
            walked[name] = walked.get(name, 0) + weight
    assert set(named) == {name for name in walked if not name.startswith("[")}
