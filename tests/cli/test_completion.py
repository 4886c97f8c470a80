"""Completion of command lines by the shells themselves, and the manual pages."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Perfuse

from needs import program_at
from perfuse.cli.verbs import VERBS


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with files to complete; `perfuse` is this one."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    script = binaries / "perfuse"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m perfuse "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{binaries}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    work = tmp_path / "work"
    work.mkdir()
    (work / "recorded.data").touch()
    (work / "records").mkdir()
    monkeypatch.chdir(work)
    return work


def in_bash(line: str) -> list[str]:
    """What bash proposes at the end of a line: the completion function is called as bash calls it."""
    program = """
        eval "$(perfuse completion bash)"
        read -ra COMP_WORDS <<< "$1"
        [[ $1 == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
        function=$(complete -p perfuse | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        compopt() { printf 'compopt %s %s\n' "$@"; }
        "$function" perfuse "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        ((${#COMPREPLY[@]})) && printf '%s\\n' "${COMPREPLY[@]}"
        exit 0
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", program, "bash", line],
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def in_fish(line: str) -> list[str]:
    """What fish proposes, without the descriptions."""
    fish = program_at("fish")
    program = "perfuse completion fish | source; complete -C $argv[1]"
    done = subprocess.run([fish, "--no-config", "-c", program, line], capture_output=True, text=True, check=True)
    return [proposed.split("\t")[0] for proposed in done.stdout.splitlines()]


@pytest.mark.parametrize("propose", [in_bash, in_fish])
def test_verbs_options_and_names(command: Path, propose: Callable[[str], list[str]]) -> None:
    assert command.is_dir()
    assert sorted(propose("perfuse rep")) == ["repair", "report"]
    assert propose("perfuse convert --list-o") == ["--list-options"]
    assert propose("perfuse convert --to spee") == ["speedscope"]
    assert propose("perfuse report --section loc") == ["locks"]
    assert sorted(propose("perfuse report --follow n")) == ["named", "none"]
    assert propose("perfuse explain JD00")[0] == "JD001"
    assert propose("perfuse help comp") == ["completion"]


@pytest.mark.parametrize("line", ["report rec", "convert -o rec", "query rec", "repair rec", "diff a rec"])
def test_bash_completes_files(command: Path, line: str) -> None:
    """The function asks bash for bash's own completion of files."""
    assert command.is_dir()
    assert in_bash(f"perfuse {line}") == ["compopt -o default"]


def test_bash_completes_directories(command: Path) -> None:
    assert command.is_dir()
    assert in_bash("perfuse report --symbols rec") == ["compopt -o dirnames"]


def test_fish_completes_files(command: Path) -> None:
    assert command.is_dir()
    assert sorted(in_fish("perfuse report reco")) == ["recorded.data", "records/"]


def test_zsh_accepts_the_script(command: Path) -> None:
    assert command.is_dir()
    zsh = program_at("zsh")
    program = """
        autoload -Uz compinit && compinit -u -d "$HOME/dump"
        eval "$(perfuse completion zsh)" && print $_comps[perfuse]
    """
    done = subprocess.run([zsh, "-f", "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("_perfuse_completion", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_says_where_it_goes(perfuse: Perfuse, shell: str) -> None:
    done = perfuse("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"# Completion of perfuse for {shell}: ")


def test_an_unknown_shell(perfuse: Perfuse) -> None:
    done = perfuse("completion", "tcsh")
    assert (done.code, done.out) == (2, "")
    assert "bash" in done.err


def test_every_verb_has_a_manual_page(perfuse: Perfuse, tmp_path: Path) -> None:
    done = perfuse("help", "--man", str(tmp_path / "man1"))
    assert done.code == 0
    names = {path.name for path in (tmp_path / "man1").iterdir()}
    assert names == {"perfuse.1", *(f"perfuse-{verb}.1" for verb in VERBS)}
    for verb in VERBS:
        page, shown = (tmp_path / "man1" / f"perfuse-{verb}.1").read_text(), perfuse("help", verb, columns=200).out
        options = [word for line in shown.splitlines() for word in line.split()[:2] if word.startswith("--")]
        for option in options:
            assert option.rstrip(",").replace("-", "\\-") in page, (verb, option)


def test_roff_reads_the_pages_without_warnings(perfuse: Perfuse, tmp_path: Path) -> None:
    groff = program_at("groff")
    assert perfuse("help", "--man", str(tmp_path / "man1")).code == 0
    for page in sorted((tmp_path / "man1").iterdir()):
        done = subprocess.run([groff, "-man", "-ww", "-Tutf8", page], capture_output=True, text=True, check=True)
        assert done.stderr == "", page
        assert "perfuse" in done.stdout


def test_a_page_shows_what_help_shows(perfuse: Perfuse, tmp_path: Path) -> None:
    man = program_at("man")
    assert perfuse("help", "--man", str(tmp_path / "man1")).code == 0
    environment = {"PATH": "/usr/bin:/bin", "MANWIDTH": "200", "LC_ALL": "C.UTF-8", "TERM": "dumb"}
    page = tmp_path / "man1" / "perfuse-convert.1"
    done = subprocess.run([man, "-l", page], capture_output=True, text=True, check=True, env=environment)
    text = " ".join(done.stdout.split())
    assert "--to TARGET" in text
    assert "perfuse convert" in text
    assert "EXIT STATUS 0 The command did what was asked" in text
