"""PHP 8.0 and newer: the JIT of opcache."""

from __future__ import annotations

from perfuse.capture.finding import Finding
from perfuse.capture.installed import Tool, at_least
from perfuse.capture.runtime import Preparation, Runtime, Setting, Workspace
from perfuse.capture.versions import output_of, text_of, version_in

INI = """; written by perfuse record
opcache.enable=1
opcache.enable_cli=1
opcache.jit_buffer_size=64M
opcache.jit=tracing
opcache.jit_debug=0x20
"""
FIRST_WITH_JIT = (8, 0)
_QUESTION = (
    "echo PHP_VERSION, ' ', (int)extension_loaded('Zend OPcache'), ' ', (int)ini_get('opcache.jit_buffer_size');"
)


def prepare(workspace: Workspace) -> Preparation:
    """An ini file that is read after the others. Only compiled functions have names: the JIT is switched on."""
    findings: list[Finding] = []
    if workspace.executable is not None:
        words = output_of((str(workspace.executable), "-r", _QUESTION)).split()
        version = version_in(words[0]) if words else ()
        loaded = words[1:2] == ["1"]
        if version and version < FIRST_WITH_JIT:
            findings.append(Finding("php", "limited", f"PHP {text_of(version)} has no JIT: no names", "use PHP 8"))
        elif words and not loaded:
            cure = f"apt install php{text_of(version[:2])}-opcache"
            findings.append(Finding("php", "limited", "opcache is not loaded: no names", cure))
        elif words[2:3] == ["0"]:
            detail = "the JIT is switched on for this recording, because only compiled functions have names"
            findings.append(Finding("php", "limited", detail, "--runtime none records PHP as it is configured"))
    directory = workspace.directory / "php"
    why = "opcache compiles, and writes /tmp/jit-PID.dump"
    setting = Setting("PHP_INI_SCAN_DIR", f":{directory}", ":", why)
    return Preparation((setting,), stacks="fp", files={directory / "perfuse.ini": INI}, findings=tuple(findings))


RUNTIME = Runtime(
    name="php",
    title="PHP",
    executables=r"php(-cgi|-fpm)?(\d+(\.\d+)?)?",
    mapped=r"opcache\.so|php(-cgi|-fpm)?(\d+(\.\d+)?)?",
    prepare=prepare,
    is_quiet=False,  # it changes how PHP runs
    writes="dump",
    advice="no function was compiled: opcache has to be loaded, with opcache.enable_cli=1 and a JIT buffer",
    tool=Tool(
        "php",
        ("php",),
        ("--version",),
        "perfuse record -- php SCRIPT",
        "apt install php-cli php8.2-opcache",
        at_least(8, 0, "the JIT"),
    ),
)
