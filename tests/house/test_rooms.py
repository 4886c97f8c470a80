"""Every format has the same rooms, and the registries alone say which formats, exporters and verbs there are."""

import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import perfuse.cli
import perfuse.exporters
from perfuse import _core
from perfuse.cli.verbs import VERBS
from perfuse.exporters import TARGETS
from perfuse.table import names

FILES = {"lib.rs", "consts.rs", "records.rs", "reader.rs", "check.rs", "ingest.rs"}
FILES_OR_FOLDERS = ("layout", "writer", "tests")
FORMATS = [row["name"] for row in _core.formats()]


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_has_its_rooms(root: Path, name: str) -> None:
    folder = root / "crates" / "formats" / name / "src"
    assert (folder.parent / "README.md").is_file()
    there = {path.name for path in folder.iterdir()}
    assert there >= FILES, f"{name} lacks {FILES - there}"
    for room in FILES_OR_FOLDERS:
        assert there & {f"{room}.rs", room}, f"{name} has no {room}"
    fixtures = {path.name for path in (folder / "testdata").iterdir()}
    assert "README.md" in fixtures, "fixtures say where they come from"
    assert len(fixtures) > 1


def test_a_folder_is_a_format(root: Path) -> None:
    folders = {path.name for path in (root / "crates" / "formats").iterdir() if path.is_dir()}
    assert folders == {*FORMATS, "registry"}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_fuzzed(root: Path, name: str) -> None:
    assert (root / "fuzz" / "fuzz_targets" / f"{name}.rs").is_file()


def test_formats_are_listed_once(root: Path) -> None:
    """No line of code outside the registry names two formats: nobody else has a list of them."""
    allowed = {"registry.rs", "lib.rs"}
    for path in (root / "crates").rglob("*.rs"):
        if path.name not in allowed and "tests" not in path.parts:
            for line in path.read_text(encoding="utf-8").splitlines():
                code = line.partition("//")[0]
                named = [name for name in FORMATS if re.search(rf"\b{name}\b", code)]
                assert len(named) < 2, f"{path}: {line}"


WRITES = {"file": "write", "directory": "write_directory", "files": "write_files"}


def test_exporters_are_in_the_registry() -> None:
    """A module that writes is a target, and writes what its entry says."""
    modules = {module.name for module in pkgutil.iter_modules(perfuse.exporters.__path__)}
    writing = {
        name: {output for output, write in WRITES.items() if hasattr(module, write)}
        for name in modules
        if (module := importlib.import_module(f"perfuse.exporters.{name}"))
    }
    assert {name: outputs for name, outputs in writing.items() if outputs} == {
        target.module: set(target.outputs) for target in TARGETS
    }


def _writes(module: ModuleType) -> bool:
    return any(hasattr(module, name) for name in ("write", "write_directory", "write_files"))


def test_verbs_are_in_the_registry() -> None:
    modules = {module.name for module in pkgutil.iter_modules(perfuse.cli.__path__)}
    commands = {name for name in modules if hasattr(importlib.import_module(f"perfuse.cli.{name}"), "command")}
    assert commands == set(VERBS)


def test_tables_a_format_fills_exist() -> None:
    for row in _core.formats():
        assert set(row["tables"]) <= set(names()), row["name"]


def test_codes_are_unique_and_of_their_format() -> None:
    prefixes: dict[str, set[str]] = {}
    codes = [rule["code"] for rule in _core.rules()]
    assert len(codes) == len(set(codes))
    for rule in _core.rules():
        assert re.fullmatch(r"[A-Z]{2}\d{3}", rule["code"]), rule["code"]
        prefixes.setdefault(rule["code"][:2], set()).add(rule["format"])
    assert all(len(formats) == 1 for formats in prefixes.values()), prefixes
