"""Which backends are worth starting."""

from pathlib import Path

from bridgehead.config import check, load

OFF = """
[server]
ungrouped = "{ungrouped}"
[backends.a]
command = "${{NEVER_SET_BY_ANYONE}}"
[groups.g]
enabled = false
members = [{{ backend = "a" }}]
"""


def test_a_backend_is_worth_starting_if_any_tool_of_it_could_be_seen(tmp_path: Path) -> None:
    file = tmp_path / "bridgehead.toml"
    file.write_text(OFF.format(ungrouped="show"))
    assert load(file, {}).wants("a")
    file.write_text(OFF.format(ungrouped="hide"))
    assert not load(file, {}).wants("a")
    assert load(file, {"MCP_GROUP_G": "on"}).wants("a")


def test_what_a_backend_lacks_that_is_not_started_is_no_problem(tmp_path: Path) -> None:
    file = tmp_path / "bridgehead.toml"
    file.write_text(OFF.format(ungrouped="hide"))
    assert check(load(file, {}), {}).ok
    assert not check(load(file, {"MCP_GROUP_G": "on"}), {}).ok
