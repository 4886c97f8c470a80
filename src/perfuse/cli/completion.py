"""`perfuse completion`"""

from __future__ import annotations

import click

from perfuse.cli.app import app
from perfuse.cli.console import Console
from perfuse.cli.environment import COMPLETION
from perfuse.cli.verbs import verb

SHELLS = {
    "bash": 'eval "$(perfuse completion bash)"   # a line of ~/.bashrc',
    "zsh": 'eval "$(perfuse completion zsh)"   # a line of ~/.zshrc, after compinit',
    "fish": "perfuse completion fish > ~/.config/fish/completions/perfuse.fish",
}
"""The shells, and how completion is switched on in each."""


@verb("completion", examples=["perfuse completion bash", "perfuse completion fish"])
@click.argument("shell", type=click.Choice(tuple(SHELLS)), metavar="SHELL")
def command(console: Console, shell: str) -> None:
    """SHELL is bash, zsh or fish. The script completes verbs, options, files, and names such as export targets.

    \b
    In ~/.bashrc:  eval "$(perfuse completion bash)"
    In ~/.zshrc:   eval "$(perfuse completion zsh)"
    For fish:      perfuse completion fish > ~/.config/fish/completions/perfuse.fish
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None
    console.line(f"# Completion of perfuse for {shell}: {SHELLS[shell]}")
    console.line(script(app, {}, "perfuse", COMPLETION).source().strip())
