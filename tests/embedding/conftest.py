"""The C library and the programs of `examples/embed_c` and `examples/embed_rust`, built once."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from needs import need

ROOT = Path(__file__).parents[2]

Program = Callable[..., str]
"""Runs a program with arguments and standard input; returns what it prints."""


def _build(*packages: str) -> Path:
    """Builds crates without what only perfuse needs; returns the directory of the results."""
    need("cargo", "cc")
    chosen = [argument for package in packages for argument in ("-p", package)]
    command = ["cargo", "build", "--quiet", "--offline", *chosen]
    subprocess.run(command, cwd=ROOT, check=True)
    metadata = subprocess.check_output(["cargo", "metadata", "--no-deps", "--format-version=1", "--offline"], cwd=ROOT)
    return Path(json.loads(metadata)["target_directory"]) / "debug"


@pytest.fixture(scope="session")
def built() -> Path:
    """Where the libraries and the Rust program are."""
    return _build("perfuse-symbolizer-c", "perfuse-example-embed")


@pytest.fixture(scope="session")
def compile_c(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles and links a C program, with further options."""
    directory = tmp_path_factory.mktemp("embed")

    def compile_c(source: Path, *more: str) -> Path:
        program = directory / source.stem
        flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-std=c11", f"-I{ROOT / 'crates/symbolizer_c/include'}", *more]
        library = built / "libperfuse_symbolizer_c.a"
        subprocess.run(["cc", *flags, "-o", program, source, library, "-lpthread", "-ldl", "-lm"], check=True)
        return program

    return compile_c


def _runner(program: Path) -> Program:
    def run(*arguments: str | Path, given: str = "") -> str:
        return subprocess.run([program, *arguments], input=given, capture_output=True, text=True, check=True).stdout

    return run


@pytest.fixture(scope="session")
def symbolize_c(compile_c: Callable[[Path], Path]) -> Path:
    """The C program that names addresses."""
    return compile_c(ROOT / "examples/embed_c/symbolize.c")


@pytest.fixture(scope="session")
def symbolize(symbolize_c: Path) -> Program:
    """Runs the C program that names addresses."""
    return _runner(symbolize_c)


@pytest.fixture(scope="session")
def symbolize_rust(built: Path) -> Program:
    """Runs the Rust program that names addresses."""
    return _runner(built / "symbolize")


@pytest.fixture(scope="session")
def unwind(compile_c: Callable[[Path], Path]) -> Program:
    """Runs the C program that prints unwinding rows."""
    return _runner(compile_c(ROOT / "examples/embed_c/unwind.c"))
