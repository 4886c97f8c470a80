"""The page of `perfuse view` in a notebook, and as a file."""

import os
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Self


class PageView:
    """A profile as a page; displays itself in a notebook.

    Args:
        make: Makes the page when it is first needed.
    """

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make

    @classmethod
    def of(cls, profile: Any) -> Self:
        """The page of a `perfuse.Profile`."""
        # By its name: the viewer is made of profiles.
        one_file = import_module("perfuse.viewer.one_file")
        paths = [recording.path for recording in profile.recordings]
        return cls(lambda: one_file.page(profile, paths, state="tab=timeline"))

    @cached_property
    def page(self) -> str:
        """The page as text, which works without a network and without a server.

        Raises:
            ExportError: It would be larger than a browser opens well; the hint states what to do.
            UsageError: The profile has nothing that the page shows.
        """
        return self._make()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file.

        Raises:
            ExportError: It would be larger than a browser opens well.
        """
        from perfuse.output.file import output_file

        content = self.page.encode()
        with output_file(Path(path)) as out:
            out.write(content)

    def _repr_html_(self) -> str:
        # A frame of its own separates the page's styles and scripts from the notebook's.
        import html

        content = html.escape(self.page)
        allowed = "allow-scripts allow-downloads"
        style = "width:100%;height:640px;border:0"
        return f'<iframe srcdoc="{content}" sandbox="{allowed}" title="perfuse view" style="{style}"></iframe>'
