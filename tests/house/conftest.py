"""The repository, as the tests of its own order see it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def crates() -> dict[str, set[str]]:
    """Every crate of the workspace, with what it depends on (its tests apart)."""
    command = ["cargo", "metadata", "--no-deps", "--format-version=1", "--offline"]
    answer: dict[str, Any] = json.loads(subprocess.check_output(command, cwd=ROOT))
    return {
        package["name"]: {d["name"] for d in package["dependencies"] if d["kind"] is None}
        for package in answer["packages"]
    }


@pytest.fixture(scope="session")
def format_folders() -> list[Path]:
    """The folder of each format."""
    return sorted(
        path.parent for path in (ROOT / "crates" / "formats").glob("*/Cargo.toml") if path.parent.name != "registry"
    )


@pytest.fixture(scope="session")
def sources() -> list[Path]:
    """Files a person wrote as source: Rust, Python, JavaScript, CSS, shell."""
    suffixes = {".rs", ".py", ".pyi", ".js", ".css", ".html", ".c", ".cpp", ".java", ".toml", ".md"}
    listed = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True)
    paths = [ROOT / name for name in listed.splitlines()]
    return [path for path in paths if path.suffix in suffixes and path.is_file()]
