"""The heat map of the lengths of calls in the viewer: of all functions, or of the chosen one."""

from viewer import SERVER, reported


def test_the_map_is_of_the_chosen_function(view):
    viewed = view(SERVER)
    viewed.show("heat", heat="latency")
    shown = viewed.page.locator("#view-heat output.where")
    shown.filter(has_text="calls of all functions").wait_for()
    calls = {row["name"]: row["num_calls"] for row in reported(SERVER)["functions"]}
    name = min(calls, key=calls.__getitem__)
    field = viewed.page.get_by_label("Calls of this function")
    field.fill(name)
    field.press("Enter")
    shown.filter(has_text=f"calls of {name}").wait_for()
    cells = [int(row[1].split()[0].replace(",", "")) for row in viewed.rows("Hottest cells")]
    assert sum(cells) == calls[name]
