"""Every format has the same rooms, and the registries alone say which formats, exporters and verbs there are."""

import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import perfuse
import perfuse.cli
import perfuse.exporters
from perfuse import _core
from perfuse.cli.verbs import VERBS
from perfuse.declared_formats import format_named
from perfuse.exporters import TARGETS
from perfuse.table import names

FORMATS = [row["name"] for row in _core.formats()]


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_has_its_files(root: Path, name: str) -> None:
    """What every format has, and each optional part exactly where the format declares it."""
    folder = root / "crates" / "formats" / name / "src"
    page = root / "docs" / "formats" / f"{name}.md"
    assert page.is_file()
    there = {path.name for path in folder.iterdir()}
    assert "lib.rs" in there
    assert there & {"tests.rs", "tests"}, f"{name} has no tests"
    declared = format_named(name).capabilities
    for part in ("writer", "repair", "layout"):
        assert bool(there & {f"{part}.rs", part}) == (part in declared), f"{name}: {part}"
    if (folder / "testdata").is_dir():
        fixtures = {path.name for path in (folder / "testdata").iterdir()}
        assert "README.md" in fixtures, "fixtures state where they come from"


def test_a_folder_is_a_format(format_folders: list[Path]) -> None:
    assert {path.name for path in format_folders} == set(FORMATS)


def test_a_format_is_one_line(root: Path, format_folders: list[Path]) -> None:
    """Outside its folder, a format is named in the manifest of the registry."""
    manifest = (root / "crates" / "formats" / "registry" / "Cargo.toml").read_text(encoding="utf-8")
    for folder in format_folders:
        line = f'perfuse-{folder.name.replace("_", "-")} = {{ path = "../{folder.name}" }}'
        assert manifest.count(line) == 1, line
    for source in (root / "crates" / "formats" / "registry").rglob("*.rs"):
        named = [name for name in FORMATS if re.search(rf"\b(perfuse_)?{name}::", source.read_text(encoding="utf-8"))]
        assert not named, source


ROLE_FROM_TABLES = re.compile(
    r"""["']\w+["']\s+(not\s+)?in\s+[\w.\[\]"']*(fills|tables)\b(?!\s*\()"""
    r"""|\b[A-Z_]+\s+in\s+[\w.]*\bfills\b|tables\s*\.contains\("""
)
"""A test whether a format or recording fills a table, by the table's name."""


def test_no_role_is_inferred_from_tables(root: Path) -> None:
    """What a recording contributes is what its format declares: nobody asks which tables the format fills."""
    assert ROLE_FROM_TABLES.search('perfs = [r for r in named if "callchains" in r.fills]')
    assert ROLE_FROM_TABLES.search("let is_trace = recording.format().tables.contains(&name)")
    folders = [root / "crates" / "recording", root / "crates" / "formats", root / "src" / "perfuse" / "formats"]
    for path in [*(root / "src").rglob("*.py"), *(root / "crates").rglob("*.rs")]:
        if not any(path.is_relative_to(folder) for folder in folders):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                assert not ROLE_FROM_TABLES.search(line), f"{path}:{number}: {line.strip()}"


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


def test_architecture_names_every_room(root: Path) -> None:
    """Crates, the package's folders and modules, and the folders of tests: each is on the page."""
    page = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    package = root / "src" / "perfuse"
    rooms = [f"{path.name}/" for path in (root / "crates").iterdir() if path.is_dir()]
    rooms += [f"{path.parent.name}/" for path in package.glob("*/__init__.py")]
    rooms += [path.name for path in package.glob("*.py") if not path.name.startswith("__")]
    rooms += [f"`tests/{path.name}`" for path in (root / "tests").iterdir() if any(path.glob("test_*.py"))]
    absent = [room for room in rooms if not re.search(rf"(?<!\w){re.escape(room)}", page)]
    assert not absent, "ARCHITECTURE.md does not name them"


def test_paths_in_architecture_exist(root: Path) -> None:
    page = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    package = root / "src" / "perfuse"
    paths = re.findall(r"`((?:[\w-]+/)+\w+\.(?:py|rs))`", page)
    assert len(paths) > 8
    roots = (root, root / "crates", package)
    assert not [path for path in paths if not any((folder / path).exists() for folder in roots)]


def test_verbs_are_in_the_registry() -> None:
    modules = {module.name for module in pkgutil.iter_modules(perfuse.cli.__path__)}
    commands = {name for name in modules if hasattr(importlib.import_module(f"perfuse.cli.{name}"), "command")}
    assert commands == set(VERBS)


def test_tables_a_format_fills_exist() -> None:
    for row in _core.formats():
        assert set(row["tables"]) <= set(names()), row["name"]


def test_every_rule_has_texts() -> None:
    """Rust declares code and severity, Python the texts: neither has a rule that the other lacks."""
    for code, rule in perfuse.rules().items():
        assert rule.title, code
        assert rule.meaning, code
        assert rule.action, code
    modules = {f"perfuse.formats.{name}.rules" for name in FORMATS}
    modules |= {"perfuse.fusing.rules", "perfuse.formats.xray.map_rules"}
    texts = [code for name in modules for code in importlib.import_module(name).RULES]
    assert sorted(texts) == sorted(perfuse.rules())


def test_codes_are_unique_and_of_their_format() -> None:
    prefixes: dict[str, set[str]] = {}
    codes = [rule["code"] for rule in _core.rules()]
    assert len(codes) == len(set(codes))
    for rule in _core.rules():
        assert re.fullmatch(r"[A-Z]{2}\d{3}", rule["code"]), rule["code"]
        prefixes.setdefault(rule["code"][:2], set()).add(rule["format"])
    assert all(len(formats) == 1 for formats in prefixes.values()), prefixes
