"""Files stay small, have names that state their content, and contain no paths of the machine they were written on."""

import re
from pathlib import Path

LONGEST = 800
LISTS = {"Makefile", "Cargo.lock", "_core.pyi"}
SAYS_NOTHING = re.compile(r"^(utils?|helpers?|common|misc|stuff)\b")
LEFT_OVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
A_MACHINE = re.compile(r"(?<![\w.])/(?:root|work)/(?!\.)|/tmp/wt/")


def test_no_file_is_long(sources: list[Path], root: Path) -> None:
    counted = {path.relative_to(root): len(path.read_text(encoding="utf-8").splitlines()) for path in sources}
    long = {
        str(path): num
        for path, num in counted.items()
        if num > LONGEST and path.suffix != ".md" and path.name not in LISTS
    }
    assert not long, "split by a chapter of the specification, or by what is done"


def test_names_say_something(sources: list[Path], root: Path) -> None:
    for path in sources:
        parts = path.relative_to(root).with_suffix("").parts
        assert not any(SAYS_NOTHING.match(part) for part in parts), path


def test_nothing_is_left_to_do(sources: list[Path]) -> None:
    here = Path(__file__)
    for path in sources:
        if path != here:
            found = LEFT_OVER.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{path}: {found}"


def test_no_path_of_a_machine(sources: list[Path]) -> None:
    here = Path(__file__)
    for path in sources:
        if path != here:
            found = A_MACHINE.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{path}: {found}"


def test_pins_have_no_addresses(root: Path) -> None:
    pins = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins if not pin.startswith("#"))
