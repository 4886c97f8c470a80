"""A browser, and the page in it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from viewer import PATIENCE_S, Viewed, served

from needs import need, need_module
from perfuse.pictures.flame_graph import FlameGraph

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright_api = need_module("playwright.sync_api")
    if CHROMIUM is None:
        need("chromium")
    playwright_api.expect.set_options(timeout=PATIENCE_S * 1000)
    with playwright_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens addresses in pages of their own; at the end, none has reported an error or requested another address."""
    problems: list[str] = []
    contexts = []

    def open_page(
        address: str,
        *more_origins: str,
        ready: str = "html[data-ready]",
        size: tuple[int, int] = (1280, 800),
        **options: Any,
    ) -> Any:
        origins = (address.split("#", maxsplit=1)[0], *more_origins)
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        context.set_default_timeout(PATIENCE_S * 1000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: None if request.url.startswith(origins) else problems.append(request.url))
        page.goto(address)
        page.wait_for_selector(ready)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def show(open_page: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """Shows the flame graph of a profile from disk."""

    def show(profile: Any, address: str = "", *, theme: str = "light", **options: Any) -> Any:
        path = tmp_path / "flame.html"
        FlameGraph.of(profile, **options).save(path)
        return open_page(path.as_uri() + address, size=(1200, 800), color_scheme=theme)

    return show


@pytest.fixture(scope="session")
def addresses() -> Iterator[Callable[[tuple[Path, ...]], str]]:
    """Addresses of servers, one for each set of files; they end with the tests."""
    known: dict[tuple[Path, ...], str] = {}
    with ExitStack() as running:

        def address(files: tuple[Path, ...]) -> str:
            if files not in known:
                known[files] = running.enter_context(served(files))
            return known[files]

        yield address


@pytest.fixture
def view(open_page: Callable[..., Any], addresses: Callable[[tuple[Path, ...]], str]) -> Callable[..., Viewed]:
    """Shows recordings in the viewer."""

    def view(files: tuple[Path, ...], *, theme: str = "light", size: tuple[int, int] = (1280, 800)) -> Viewed:
        address = addresses(files)
        options = {"color_scheme": theme, "reduced_motion": "reduce", "accept_downloads": True}
        return Viewed(open_page(address, "blob:", size=size, **options), address)

    return view
