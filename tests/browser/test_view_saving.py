"""Every view is saved as a picture and as rows, also those that are tables, and has a command."""

import csv
from xml.etree import ElementTree

import pytest
from viewer import POSTCARDS, reported

PICTURED = ("overview", "timeline", "heat", "flame", "tree", "functions", "callers", "annotate", "code")
SVG = "{http://www.w3.org/2000/svg}"


def saved(page, kind):
    """The bytes of what the menu offers under a name."""
    if page.locator("#save-items").is_hidden():
        page.get_by_role("button", name="Save").click()
    with page.expect_download() as download:
        page.locator("#save-items button", has_text=kind).click()
    return download.value.path().read_bytes()


def test_every_view_is_a_picture_rows_and_a_command(view):
    viewed = view(POSTCARDS)
    page = viewed.page
    top = reported(POSTCARDS)["top_self"][0]["name"]
    for tab in PICTURED:
        viewed.show(tab)
        assert saved(page, "PNG").startswith(b"\x89PNG\r\n"), tab
        picture = ElementTree.fromstring(saved(page, "SVG").decode())
        assert int(picture.get("width")) > 200, tab
        texts = [text.text for text in picture.iter(f"{SVG}text")]
        rows = list(csv.reader(saved(page, "CSV").decode().splitlines()))
        assert len(rows) > 1, tab
        assert len({len(row) for row in rows}) == 1 or tab == "callers", tab
        if tab in ("overview", "functions", "callers"):
            assert any(top in (text or "") for text in texts), tab
        assert viewed.command().startswith("perfuse "), tab


@pytest.mark.parametrize(
    ("window", "option"),
    [
        ("250000000-500000000", " --between 0.25..0.5"),
        ("0-900", " --between ..0.0000009"),
        ("1500000000-1537217859", " --between 1.5.."),
    ],
)
def test_the_command_of_a_timeline_has_the_time_in_sight(view, window, option):
    viewed = view(POSTCARDS)
    viewed.show("timeline", window=window)
    assert viewed.command().endswith(option)
    assert reported(POSTCARDS, *option.split())["events"]
