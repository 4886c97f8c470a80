"""The viewer: filters of stacks are options of the command line, in the address and in every view of stacks."""

from viewer import POSTCARDS, reported


def test_filters_are_added_by_keys_stay_in_the_address_and_are_removed(view):
    viewed = view(POSTCARDS)
    page = viewed.page
    viewed.show("tree")
    page.keyboard.press("Shift+F")
    page.get_by_label("Filter stacks").wait_for()
    page.keyboard.type("rendr")
    page.keyboard.press("Enter")
    page.locator("#filter-problem", has_text="render").wait_for()
    page.locator("#filter-pattern").fill("render")
    page.keyboard.press("Enter")
    page.wait_for_selector("#selection .chip.filter")
    viewed.settled("tree")
    assert viewed.state() == {"tab": "tree", "only": "render"}
    only = reported(POSTCARDS, "--only", "render")["events"][0]
    assert viewed.rows("Call tree")[0][2] == f"{only['samples']:,}"
    page.get_by_label("Tier", exact=True).select_option("turbofan")
    viewed.settled("tree")
    both = reported(POSTCARDS, "--only", "render", "--tier", "turbofan")["events"][0]
    assert page.locator("#view-tree .where").inner_text().startswith(f"{both['samples']:,} samples")
    page.get_by_role("button", name="Save").click()
    assert "--only render --tier turbofan" in page.locator("#command").inner_text()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Remove: only render").click()
    viewed.settled("tree")
    tier = reported(POSTCARDS, "--tier", "turbofan")["events"][0]
    assert page.locator("#view-tree .where").inner_text().startswith(f"{tier['samples']:,} samples")


def test_views_without_stacks_say_that_filters_do_not_apply(view):
    viewed = view(POSTCARDS)
    viewed.show("code", only="render")
    bar = viewed.page.locator("#selection").inner_text()
    assert "only render" in bar
    assert "filters do not apply here" in bar
    viewed.show("heat", only="render", heat="threads")
    assert "filters do not apply" not in viewed.page.locator("#selection").inner_text()
    weight = reported(POSTCARDS, "--only", "render")["events"][0]["weight"]
    assert viewed.page.locator("#view-heat .where").inner_text() == f"{weight / 1e6:.0f} ms in all"
