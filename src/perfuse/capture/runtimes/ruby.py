"""Ruby 3.3 and newer: YJIT's map."""

from __future__ import annotations

from perfuse.capture.finding import Finding
from perfuse.capture.installed import Tool, at_least
from perfuse.capture.runtime import Preparation, Runtime, Setting, Workspace
from perfuse.capture.versions import output_of, text_of, version_in

FIRST_WITH_MAP = (3, 3)
_QUESTION = "print RUBY_VERSION, ' ', RbConfig::CONFIG['YJIT_SUPPORT']"
ADVICE = "names of Ruby functions need 3.3 or newer, built with YJIT; `rbspy record` reads the others"


def prepare(workspace: Workspace) -> Preparation:
    """A map in /tmp. An interpreter that does not know the option stops, so it is asked first."""
    if workspace.executable is None:
        return Preparation()
    words = output_of((str(workspace.executable), "--disable=gems", "-e", _QUESTION)).split()
    version = version_in(words[0]) if words else ()
    if version < FIRST_WITH_MAP or words[1:2] in ([], ["no"]):
        detail = (
            f"Ruby {text_of(version)} {'was built without YJIT' if version >= FIRST_WITH_MAP else 'writes no names'}"
        )
        return Preparation(findings=(Finding("ruby", "limited", detail, ADVICE),))
    why = "YJIT compiles, and writes /tmp/perf-PID.map"
    return Preparation((Setting("RUBYOPT", "--yjit --yjit-perf", " ", why),), stacks="fp")


RUNTIME = Runtime(
    name="ruby",
    title="Ruby",
    executables=r"ruby(\d+(\.\d+)?)?|irb|rake|bundle",
    mapped=r"ruby(\d+(\.\d+)?)?|libruby.*\.so.*",
    prepare=prepare,
    is_quiet=False,  # other builds refuse the option
    writes="map",
    advice=ADVICE,
    tool=Tool(
        "ruby",
        ("ruby",),
        ("--version",),
        "perfuse record -- ruby SCRIPT",
        "apt install ruby",
        at_least(3, 3, "--yjit-perf"),
    ),
)
