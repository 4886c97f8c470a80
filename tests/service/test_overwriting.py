"""Outputs never replace an input, and replace another file only by content of the same kind."""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

import perfuse as pf
from perfuse import sframe
from perfuse.cli import run
from perfuse.errors import ExportError, UsageError
from perfuse.output.file import OutputError

SMALL = Path(__file__).parents[1] / "cli" / "testdata" / "perf.data"
USAGE = 2
UNREADABLE = 3
Words = list[str]
COMMANDS: dict[str, Callable[[str, str], Words]] = {
    "repair": lambda file, out: ["repair", file, "-o", out],
    "convert": lambda file, out: ["convert", file, "-o", out, "--to", "speedscope"],
    "flame": lambda file, out: ["flame", file, "-o", out],
    "query": lambda file, out: ["query", file, "SELECT * FROM samples", "--format", "csv", "-o", out],
}


def symbolic(file: Path) -> Path:
    link = file.with_name("symbolic.html")
    link.symlink_to(file)
    return link


def hard(file: Path) -> Path:
    link = file.with_name("hard.html")
    link.hardlink_to(file)
    return link


NAMES: dict[str, Callable[[Path], Path]] = {
    "the same name": lambda file: file,
    "another spelling": lambda file: file.parent / "folder" / ".." / file.name,
    "a symbolic link": symbolic,
    "a hard link": hard,
}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A small perf.data by a name that every verb writes to."""
    (tmp_path / "folder").mkdir()
    return Path(shutil.copyfile(SMALL, tmp_path / "flame.html"))


@pytest.mark.parametrize("force", [False, True], ids=["", "force"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("verb", COMMANDS)
def test_an_input_is_not_overwritten(
    recording: Path, verb: str, name: str, force: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    before = recording.read_bytes()
    out = NAMES[name](recording)
    words = COMMANDS[verb](str(recording), str(out))
    assert run([*words, "--force"] if force else words) == USAGE
    assert "is not overwritten" in capsys.readouterr().err
    assert recording.read_bytes() == before
    assert out.samefile(recording)


def test_each_file_of_a_profile_is_an_input(jitdump_corpus: Path, tmp_path: Path) -> None:
    dump = Path(shutil.copyfile(jitdump_corpus / "produced/node20.dump", tmp_path / "dump.html"))
    profile = pf.fuse(jitdump_corpus / "produced/node20.perf.data", dump)
    with pytest.raises(UsageError, match="is not overwritten"):
        profile.export(hard(dump), to="html")


def test_a_program_is_not_overwritten_by_a_section_for_it(sframe_corpus: Path, tmp_path: Path) -> None:
    program = Path(shutil.copyfile(sframe_corpus / "v1/aarch64/libsqlite.so", tmp_path / "library.so"))
    before = program.read_bytes()
    assert (
        run(["sframe", "convert", str(program), "--version", "2", "--into", str(program), "-o", str(program)]) == USAGE
    )
    section = sframe.open(program).convert(2).section
    with pytest.raises(UsageError, match="is not overwritten"):
        section.write_into(program, hard(program))
    assert run(["sframe", "convert", str(program), "--version", "2", "-o", str(program)]) == USAGE
    assert program.read_bytes() == before


OTHER_CONTENT = {
    "a program": b"\x7fELF" + bytes(100),
    "JSON": b'{"a": 1}',
    "a recording": b"DTiJ" + bytes(100),
    "text": b"remember the milk\n",
    "binary data": bytes(range(256)),
    "gzip data": b"\x1f\x8b\x08" + bytes(20),
}


@pytest.mark.parametrize("kind", OTHER_CONTENT)
def test_content_of_another_kind_is_replaced_on_request(
    recording: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.svg"
    out.write_bytes(OTHER_CONTENT[kind])
    assert run(["flame", str(recording), "-o", str(out)]) == USAGE
    message = capsys.readouterr().err
    assert "out.svg exists and has" in message
    assert "--force" in message
    assert out.read_bytes() == OTHER_CONTENT[kind]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flame.html", "folder", "out.svg"]
    assert run(["flame", str(recording), "-o", str(out), "--force"]) == 0
    assert out.read_text().startswith("<svg") or "<svg" in out.read_text()[:500]
    assert run(["flame", str(recording), "-o", str(out)]) == 0, "the same kind needs no --force"


@pytest.mark.parametrize("name", ["out.collapsed", "out.json", "out.pb.gz", "out.html", "out.pftrace"])
def test_an_output_may_be_written_again(recording: Path, tmp_path: Path, name: str) -> None:
    profile = pf.fuse(recording)
    profile.export(tmp_path / name)
    first = (tmp_path / name).read_bytes()
    profile.export(tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


def test_an_empty_file_is_replaced(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.svg"
    out.touch()
    out.chmod(0o640)
    pf.fuse(recording).export(out)
    assert out.stat().st_size
    assert stat.S_IMODE(out.stat().st_mode) == 0o640


def as_other_user(work: Callable[[], object]) -> str:
    """What the work raises in a process without the rights of root, as text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setegid(65534)
                os.seteuid(65534)
            work()
        except Exception as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


def test_a_read_only_file_is_not_replaced(recording: Path) -> None:
    """A rename needs no right to write the file that it replaces."""
    profile = pf.fuse(recording)
    # In a directory that another user may enter; those of pytest are its user's.
    with tempfile.TemporaryDirectory() as shared:
        Path(shared).chmod(0o777)
        out = Path(shared) / "out.svg"
        out.write_text("<svg/>")
        out.chmod(0o444)
        said = as_other_user(lambda: profile.export(out))
        assert said == f"{OutputError.__name__}: cannot write {out}: the file there is read-only"
        assert out.read_text() == "<svg/>"


def test_an_output_that_may_not_be_written_is_named(recording: Path) -> None:
    """The temporary file, which the system refuses, is beside it under another name."""
    profile = pf.fuse(recording)
    with tempfile.TemporaryDirectory() as shared:
        Path(shared).chmod(0o555)
        for write, out in ((profile.export, Path(shared, "out.svg")), (profile.save, Path(shared, "out.perfuse"))):
            said = as_other_user(lambda write=write, out=out: write(out))
            assert said == f"{OutputError.__name__}: cannot write {out}: Permission denied"
        assert list(Path(shared).iterdir()) == []


def test_an_input_that_may_not_be_read_is_named() -> None:
    with tempfile.TemporaryDirectory() as shared:
        Path(shared).chmod(0o777)
        (secret := Path(shared, "perf.data")).write_bytes(b"PERFILE2")
        secret.chmod(0)
        said = as_other_user(lambda: pf.open(secret))
        assert said == f"UnreadableInput: cannot read {secret}: Permission denied"


def test_a_link_to_a_file_of_another_user_is_not_followed(recording: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a file of another user")
    profile = pf.fuse(recording)
    victim, link = tmp_path / "victim.svg", tmp_path / "out.svg"
    victim.write_text("<svg/>")
    os.chown(victim, 65534, 65534)
    link.symlink_to(victim)
    with pytest.raises(ExportError, match="another user"):
        profile.export(link)
    assert victim.read_text() == "<svg/>"


def test_a_link_that_leads_nowhere_is_not_followed(recording: Path, tmp_path: Path) -> None:
    link = tmp_path / "out.svg"
    link.symlink_to(tmp_path / "absent.svg")
    with pytest.raises(ExportError, match="leads nowhere"):
        pf.fuse(recording).export(link)
    assert not (tmp_path / "absent.svg").exists()
