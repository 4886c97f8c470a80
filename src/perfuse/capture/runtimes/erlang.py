"""Erlang/OTP 24 and newer, whose emulator compiles everything that it loads."""

from perfuse.capture.installed import Tool
from perfuse.capture.runtime import Preparation, Runtime, Setting, Workspace


def prepare(_workspace: Workspace) -> Preparation:
    """A dump in /tmp. No option for its directory: releases before 26 do not know it, and do not start."""
    why = "the emulator writes /tmp/jit-PID.dump (OTP 24+)"
    return Preparation((Setting("ERL_FLAGS", "+JPperf dump", " ", why),), stacks="fp")


RUNTIME = Runtime(
    name="erlang",
    title="Erlang",
    executables=r"erl|erlexec|escript|elixir|iex|mix|beam\.smp",
    mapped=r"beam(\.\w+)?\.smp|beam\.smp",
    prepare=prepare,
    is_quiet=False,  # older releases refuse unknown options
    writes="dump",
    advice="names need OTP 24 or newer with the JIT: ERL_FLAGS='+JPperf dump'",
    tool=Tool("erlang", ("erl",), ("-version",), "erl +JPperf dump", "apt install erlang-base"),
)
