"""Opens the page in a browser without showing its secret to other users of the machine."""

import html
import os
import tempfile
import threading
import webbrowser
from pathlib import Path

REDIRECT = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<title>perfuse</title>
<meta http-equiv="refresh" content="0; url={url}">
"""
KEPT_S = 15.0
"""Time after which the browser has surely read the file."""


def open_in_browser(url: str) -> Path | None:
    """Opens a URL; returns the file through which it does, or None where there is no browser.

    The arguments of a browser's process can be seen by every user, so it is given the name of a file that only this
    user can read, and that leads to the URL.
    """
    folder = os.environ.get("XDG_RUNTIME_DIR")
    usable = folder if folder and os.access(folder, os.W_OK) else None
    descriptor, name = tempfile.mkstemp(prefix="perfuse-view-", suffix=".html", dir=usable)
    path = Path(name)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(REDIRECT.format(url=html.escape(url)))
    if not webbrowser.open(path.as_uri()):
        path.unlink(missing_ok=True)
        return None
    timer = threading.Timer(KEPT_S, lambda: path.unlink(missing_ok=True))
    timer.daemon = True
    timer.start()
    return path
