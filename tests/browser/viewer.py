"""The viewer's page on recordings: a server of each, and what its page and the command line show."""

import functools
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
POSTCARDS = (ROOT / "examples/postcards/perf.data.gz", ROOT / "examples/postcards/jit-32015.dump.gz")
SERVER = (ROOT / "examples/xray_server/xray-log.server.KJtK6H.zst",)
GO_TO = """
hash => new Promise((done) => {
    const before = location.hash;
    addEventListener("hashchange", () => done(), { once: true });
    location.hash = hash;
    if (location.hash === before) done();
})
"""
"""Ends when the page, which listens for longer, has begun to show the new state."""
PATIENCE_S = 300
"""After which what a test waits for counts as not coming."""


@contextmanager
def served(files: tuple[Path, ...], *options: str) -> Iterator[str]:
    """`perfuse view --no-browser`; its address is the first line of its output."""
    command = [sys.executable, "-m", "perfuse", "view", "--no-browser", *options, *map(str, files)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        try:
            yield running.stdout.readline().strip()
        finally:
            running.terminate()


@functools.cache
def reported(files: tuple[Path, ...], *options: str) -> Any:
    """`perfuse report --json`."""
    command = [sys.executable, "-m", "perfuse", "report", "--json", "--limit", "0", *options, *map(str, files)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr.decode()
    return json.loads(done.stdout)


def queried(files: tuple[Path, ...], query: str) -> list[list[Any]]:
    """The rows of `perfuse query`."""
    command = [sys.executable, "-m", "perfuse", "query", "--json", *map(str, files), query]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr.decode()
    return [list(row.values()) for row in json.loads(done.stdout)]


def answer(address: str, path: str) -> Any:
    """What the server answers, as JSON."""
    base, token = address.split("#t=")
    request = urllib.request.Request(f"{base}api/{path}", headers={"X-Perfuse-Token": token})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
        return json.load(reply)


class Viewed:
    """A page of the viewer."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.address = address

    def show(self, tab: str, **state: str) -> Any:
        """Goes to a view by the address, as a link would; returns its element."""
        parameters = "&".join(f"{name}={value}" for name, value in {"tab": tab, **state}.items())
        self.page.evaluate(GO_TO, parameters)
        return self.settled(tab)

    def settled(self, tab: str) -> Any:
        """The element of a view, when it shows all that was asked for."""
        self.page.wait_for_selector(f"#tab-{tab}[aria-selected=true]")
        self.page.wait_for_selector(f"#view-{tab}[aria-busy=false]:visible")
        return self.page.locator(f"#view-{tab}")

    def self_shares(self) -> set[tuple[str, str]]:
        """Name and share of self of the functions with more than 1 %, as the table of functions has them."""
        rows = [(row[-1], row[0].split()[-1]) for row in self.rows("Functions") if row[0][0].isdigit()]
        return {(name, share) for name, share in rows if float(share.rstrip("%")) > 1}

    def rows(self, name: str, *, hints: bool = False) -> list[list[str]]:
        """Texts of the cells of a table that are in the page, by the table's accessible name.

        A name's hint, such as its module, follows it with `hints`.
        """
        table = self.page.locator(f'table[aria-label="{name}"]:visible')
        table.wait_for()
        return table.evaluate(
            """(table, hints) => [...table.querySelectorAll("tbody tr[role=row]")].map(
                (row) => [...row.cells].map((cell) => ((!hints && cell.querySelector("b")) || cell).textContent))""",
            hints,
        )

    def command(self) -> str:
        """The command that the menu `Save` has."""
        self.page.get_by_role("button", name="Save").click()
        command = self.page.locator("#command").inner_text()
        self.page.keyboard.press("Escape")
        return command

    def state(self) -> dict[str, str]:
        """The state in the address."""
        fragment = self.page.evaluate("location.hash").removeprefix("#")
        return dict(part.split("=", 1) for part in fragment.split("&") if part)
