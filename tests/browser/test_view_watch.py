"""The page of files that grow: it shows the new content, in the view and with the selection that it had."""

import gzip

from playwright.sync_api import expect
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
        functions = perfuse.fuse(path).sql(
            "SELECT count(*) FROM code_objects JOIN functions USING (function_id) WHERE name = 'shade'"
        )
        # The page may show parts of what was added, as long as it comes.
        rows = page.locator('table[aria-label="Functions that were compiled"] tbody tr[role=row]')
        row = rows.filter(has=page.get_by_text("shade", exact=True))
        expect(row.locator("td").first).to_have_text(str(functions.fetchall()[0][0]))
        viewed.settled("code")
        assert page.locator("#view-code .where").inner_text() != before
        assert viewed.state() == {"tab": "code", "q": "shade"}
        assert "watched" in page.locator("#summary").inner_text()
        page.close()
