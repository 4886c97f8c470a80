"""XRay: the log of every call that a program compiled with `-fxray-instrument` writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perfuse.capture.finding import Finding
from perfuse.capture.program import Program
from perfuse.capture.request import Request
from perfuse.capture.runtime import Preparation, Setting
from perfuse.capture.stack_method import has_instrumentation_map

CURE = "compile and link with clang -fxray-instrument -fxray-instruction-threshold=1"

ALL_CALLS = "func_duration_threshold_us=0 max_stack_depth=4096"
"""By default, leaf calls of less than 5 µs and calls deeper than 64 are not logged."""


def prepare(_request: Request, program: Program, directory: Path, _environment: Mapping[str, str]) -> Preparation:
    """A log beside which the program is copied, because its map names the functions.

    The mode is `xray-basic`: XRay's runtime starts it by itself. Flight data recorder mode has to be started by the
    program, by `__xray_log_init_mode`.
    """
    findings: tuple[Finding, ...] = ()
    if not has_instrumentation_map(program.executable) and not program.starts_others:
        detail = f"{program.executable} has no section xray_instr_map: it was not compiled for XRay"
        findings = (Finding("xray", "missing", detail, CURE),)
    value = f"patch_premain=true xray_mode=xray-basic xray_logfile_base={directory / 'xray-log.'}"
    settings = (
        Setting("XRAY_OPTIONS", value, " ", "calls are logged, from before main on"),
        Setting("XRAY_BASIC_OPTIONS", ALL_CALLS, " ", "short calls and deep stacks too: XRay itself drops both"),
    )
    return Preparation(settings, findings=findings)


def has_basic_mode(program: Path) -> bool:
    """Whether the mode that XRay's runtime starts by itself was linked into a program: it is registered by its name."""
    return b"xray-basic\0" in program.read_bytes()
