"""The list of runtimes."""

from __future__ import annotations

from importlib import import_module

from perfuse.capture.runtime import Runtime

MODULES = (
    "node",
    "deno",
    "javascriptcore",
    "spidermonkey",
    "openjdk",
    "dotnet",
    "mono",
    "php",
    "dart",
    "erlang",
    "ruby",
    "julia",
    "wasmtime",
    "luajit",
    "postgresql",
    "cpython",
    "qemu",
    "llvm",
)
"""Modules of `perfuse.capture.runtimes`. A process that mapped files of several, because it executed one after another
or embeds one, is of the first here."""

RUNTIMES: tuple[Runtime, ...] = tuple(import_module(f"perfuse.capture.runtimes.{module}").RUNTIME for module in MODULES)


def runtime_of(names: tuple[str, ...]) -> Runtime | None:
    """The runtime of a program, by the base names of its file and its interpreters."""
    return next((runtime for runtime in RUNTIMES for name in names if runtime.runs(name)), None)


def runtime_that_maps(names: frozenset[str]) -> Runtime | None:
    """The runtime of a process, by the base names of the files it mapped."""
    return next((runtime for runtime in RUNTIMES for name in names if runtime.maps(name)), None)
