"""Files that grow while the page is open: its answers are those of what they contain now."""

import gzip
import subprocess
import sys
from pathlib import Path

import perfuse
from perfuse.viewer.session import Session
from perfuse.viewer.watching import Watching, state_of
from service.view_page import Page, served_session

DUMP = Path(__file__).parents[2] / "examples" / "postcards" / "jit-32015.dump.gz"


def num_code(path: Path) -> int:
    return len(perfuse.open(path).tables["code_objects"].to_arrow())


def replaced(path: Path, content: bytes) -> None:
    new = path.with_name("new")
    new.write_bytes(content)
    new.replace(path)


def changed(page: Page, data: int) -> None:
    """Waits until the answers are of the content number `data`."""
    state = page.get("state")
    while state["data"] < data:
        state = page.get(f"state?after={state['generation']}")
    assert state["watched"]


def test_answers_are_of_the_new_content(tmp_path: Path) -> None:
    content = gzip.decompress(DUMP.read_bytes())
    path = tmp_path / "jit-32015.dump"
    path.write_bytes(content[: len(content) // 2])
    before = num_code(path)
    session = Session(lambda progress: perfuse.fuse(path, progress=progress), [str(path)])
    with served_session(session) as page:
        session.note_watched()
        session.start()
        watching = Watching(session)
        watching.start()
        session.join()
        assert page.get("code")["num"] > 0
        assert sum(tier["num"] for tier in page.get("code")["tiers"]) == before
        with path.open("ab") as out:
            out.write(content[len(content) // 2 :])
        changed(page, 2)
        assert sum(tier["num"] for tier in page.get("code")["tiers"]) == num_code(path) > before
        # Another file that cannot be read takes its place: the answers stay, and the page states it.
        replaced(path, b"JI")
        state = page.get("state")
        while state["stale"] is None:
            state = page.get(f"state?after={state['generation']}")
        assert sum(tier["num"] for tier in page.get("code")["tiers"]) > before
        replaced(path, content)
        changed(page, 3)
        assert page.get("state")["stale"] is None
        watching.stop()


def test_new_files_of_a_directory_are_changes(tmp_path: Path) -> None:
    before = state_of([str(tmp_path)])
    (tmp_path / "jit-1.dump").write_bytes(b"x")
    after = state_of([str(tmp_path)])
    assert before == ()
    assert [(Path(name).name, size) for name, size, _ in after] == [("jit-1.dump", 1)]
    assert state_of([str(tmp_path / "missing")]) == ()


def test_an_answer_of_old_content_is_not_kept() -> None:
    """A request that began before the files changed ends after it."""
    session = Session(lambda progress: perfuse.fuse(DUMP, progress=progress), [str(DUMP)])
    session.start()
    session.join()

    def make() -> int:
        session.reopen()
        return 1

    assert session.cached(("number", 1), make) == 1
    assert session.cached(("number", 1), lambda: 2) == 2


def test_standard_input_is_not_watched() -> None:
    command = [sys.executable, "-m", "perfuse", "view", "--no-browser", "--watch", "-"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "standard input is read once" in done.stderr
