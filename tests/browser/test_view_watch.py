"""The page of files that grow: it shows the new content, in the view and with the selection that it had."""

import gzip

from viewer import POSTCARDS, Viewed, served

import perfuse


def test_the_page_follows_a_file_that_grows(open_page, tmp_path):
    content = gzip.decompress(POSTCARDS[1].read_bytes())
    path = tmp_path / "jit-32015.dump"
    path.write_bytes(content[: len(content) // 2])
    with served((path,), "--watch") as address:
        page = open_page(address, reduced_motion="reduce")
        viewed = Viewed(page, address)
        viewed.show("code", q="shade")
        before = page.locator("#view-code .where").inner_text()
        with path.open("ab") as out:
            out.write(content[len(content) // 2 :])
        page.wait_for_selector("html[data-data='2']")
        viewed.settled("code")
        assert page.locator("#view-code .where").inner_text() != before
        assert viewed.state() == {"tab": "code", "q": "shade"}
        assert "watched" in page.locator("#summary").inner_text()
        [row] = [row for row in viewed.rows("Functions that were compiled") if row[-1] == "shade"]
        functions = perfuse.fuse(path).sql(
            "SELECT count(*) FROM code_objects JOIN functions USING (function_id) WHERE name = 'shade'"
        )
        assert row[0] == str(functions.fetchall()[0][0])
        page.close()
