"""The title of a recording is the recorded command, without perf's own."""

import pytest

from perfuse.fusing.facts import _program


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("perf record -k mono -g -- /usr/bin/node --perf-prof s.js", "node --perf-prof s.js"),
        ("/usr/bin/perf record -F 999 -g ./app /etc/app.conf", "app /etc/app.conf"),
        ("perf record -e cpu-clock -p 12", None),
        ("perf inject -j -i /tmp/perf.data", "perf inject -j -i /tmp/perf.data"),
        ("", None),
    ],
)
def test_title(words: str, title: str | None) -> None:
    assert _program(words.split()) == title
