"""Ways from one view of the viewer to another, and addresses that are opened again."""

from playwright.sync_api import expect
from viewer import POSTCARDS, SERVER, Viewed, reported, served


def test_from_the_slowest_call_to_its_place_on_the_timeline(view):
    viewed = view(SERVER)
    viewed.show("calls")
    page = viewed.page
    name = viewed.rows("Slowest calls")[0][-1]
    page.locator('table[aria-label="Slowest calls"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    viewed.settled("timeline")
    expect(page.locator("#view-timeline .slice h2")).to_have_text(name)
    assert "window" in viewed.state()


def test_from_a_function_to_its_callers_and_the_sandwich(view):
    viewed = view(POSTCARDS)
    viewed.show("functions")
    page = viewed.page
    name = viewed.rows("Functions")[0][-1]
    page.locator("#view-functions tbody tr[role=row]").first.dblclick()
    viewed.settled("callers")
    expect(page.locator("#view-callers .bar h2")).to_have_text(name)
    page.get_by_role("button", name="Sandwich flame graph").click()
    viewed.settled("flame")
    expect(page.locator("[data-view=sandwich]")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#functions tbody tr[aria-selected=true] b")).to_have_text(name)
    page.go_back()
    viewed.settled("callers")


def test_an_address_shows_the_same_again(view):
    viewed = view(POSTCARDS)
    page = viewed.page
    viewed.show("flame", range="100000000-300000000")
    page.click("#graph", position={"x": 200, "y": 50})
    page.locator("#crumbs button").nth(1).wait_for()
    path = page.locator("#crumbs button").all_inner_texts()
    page.reload()
    page.wait_for_selector("html[data-ready]")
    viewed.settled("flame")
    page.locator("#crumbs button").nth(1).wait_for()
    assert page.locator("#crumbs button").all_inner_texts() == path
    assert viewed.state()["range"] == "100000000-300000000"


def test_a_search_goes_along_to_other_views(view):
    viewed = view(POSTCARDS)
    page = viewed.page
    name = reported(POSTCARDS)["top_self"][0]["name"]
    viewed.show("timeline")
    page.fill("#timeline-search", name)
    viewed.show("functions", q=name)
    found = [row[-1] for row in viewed.rows("Functions")]
    assert found[0] == name
    assert all(name in each for each in found)
    assert len(found) < len(reported(POSTCARDS)["top_self"])


def test_the_key_of_a_search_field_starts_a_search(view):
    viewed = view(SERVER)
    page = viewed.page
    viewed.show("calls")
    first, *others = (row[-1] for row in viewed.rows("Slowest calls"))
    name = next(one for one in others if one != first)
    page.keyboard.press("/")
    page.keyboard.type(name)
    expect(page.locator('table[aria-label="Slowest calls"] tbody tr[role=row]').first).to_contain_text(name)
    assert {row[-1] for row in viewed.rows("Slowest calls")} == {name}


def test_the_page_states_that_the_server_ended(browser):
    with served(SERVER) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        Viewed(page, address).settled("overview")
    page.locator("#tab-sql").click()
    alert = page.locator("#view-sql [role=alert]")
    alert.wait_for()
    assert "server" in alert.inner_text()
    context.close()
