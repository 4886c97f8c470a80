"""The title of a recording is the recorded command, without perf's own."""

import pytest

from perfuse.fusing.facts import _program


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("perf record -k mono -g -- /usr/bin/node --perf-prof s.js", "node --perf-prof s.js"),
        ("/usr/bin/perf record -F 999 -g ./app /etc/app.conf", "app /etc/app.conf"),
        ("perf record -e cpu-clock -p 12", None),
        ("perf record -g -u 1000", None),
        ("perf record -ag -F 99 sleep 1", "sleep 1"),
        ("perf record -f -e cycles ./app", "app"),
        ("perf record -e sched:sched_switch --filter prev_pid==1 -G web --delay=100 ./app 1", "app 1"),
        ("perf record -r 50 --max-size 1G -j any,u -- ./app", "app"),
        ("/data/simpleperf record -p 8337 --call-graph dwarf -f 1000 --exit-with-parent", None),
        ("simpleperf record --app com.example --duration 10 -g", "com.example"),
        (
            "/data/simpleperf record --app com.example --in-app --tracepoint-events /data/events --out-fd 3 -g",
            "com.example",
        ),
        (
            "simpleperf record --symfs /data/libs --add-meta-info app_type=x -e task-clock:u -f 1000 -g ./app -v",
            "app -v",
        ),
        ("perf inject -j -i /tmp/perf.data", "perf inject -j -i /tmp/perf.data"),
        ("", None),
    ],
)
def test_title(words: str, title: str | None) -> None:
    assert _program(words.split()) == title
