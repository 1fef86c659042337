"""Changing one table of a TOML text keeps every other byte."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.config.toml_text import TomlUneditable, put_table, put_value, remove_table, rendered_table

ENTRY = {"command": "/opt/bridgehead", "args": ["mcp", "stdio"], "env": {"A": "b"}}
PATH = ("mcp_servers", "bridgehead")

COMMENTED = """\
# What I use
model = "best"   # for now

[mcp_servers.bridgehead] # the bridge
command = '''
[not.a.header]
'''
args = [
  "a", # one
  "]",
]

[mcp_servers.bridgehead.env]
A = "b"
# about the next one
[mcp_servers."other.one"]
url = "https://x.example/#[mcp_servers.bridgehead]" # and this

[tui]
theme = { name = "dark" }
"""
BARE = """\
# What I use
model = "best"   # for now

# about the next one
[mcp_servers."other.one"]
url = "https://x.example/#[mcp_servers.bridgehead]" # and this

[tui]
theme = { name = "dark" }
"""

PIECES = [
    "# a comment\n",
    "\n",
    "  \n",
    '[mcp_servers.a]\ncommand = "x"  # why\n',
    "[mcp_servers.b] # b\nurl = 'https://x.example'\n\n  [mcp_servers.b.http_headers]\n  \"X-Y\" = 'z'\n",
    "[tui]\nnotes = '''\n[mcp_servers.bridgehead]\n'''\n",
    "[[hooks]]\nrun = [\n  'a', # b\n]\n",
    "[profiles.'x.y']\nwhen = 2026-12-01T03:00:00Z\n",
]
TEXTS = st.lists(st.sampled_from(PIECES), unique=True).map("".join)
ENTRIES = st.dictionaries(
    st.text(max_size=8),
    st.text(max_size=12)
    | st.booleans()
    | st.integers(-9, 9)
    | st.lists(st.text(max_size=5), max_size=3)
    | st.dictionaries(st.text(max_size=5), st.text(max_size=40), max_size=4),
    min_size=1,
    max_size=4,
)


@given(TEXTS, ENTRIES, st.booleans())
def test_a_table_that_was_put_in_and_taken_out_leaves_the_same_bytes(
    text: str, entry: dict[str, Any], carriage_returns: bool
) -> None:
    text = text.replace("\n", "\r\n") if carriage_returns else text

    changed = put_table(text, PATH, entry)

    before = tomllib.loads(text)
    servers = {**before.get("mcp_servers", {}), "bridgehead": entry}
    assert tomllib.loads(changed) == {**before, "mcp_servers": servers}
    assert changed.startswith(text)
    assert remove_table(changed, PATH) == text
    assert remove_table(put_table(changed, PATH, ENTRY), PATH) == text


def test_a_table_goes_with_all_that_is_below_it_and_no_comment_of_another() -> None:
    assert remove_table(COMMENTED, PATH) == BARE


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { a = { command = "x" } }  # all in one\n',
        'mcp_servers.a.command = "x"\nother = 1\n',
        "[mcp_servers]\na = { command = 'x' }\n# end\n",
    ],
)
def test_tables_written_in_other_ways_are_changed_too(text: str) -> None:
    changed = put_table(text, PATH, ENTRY)

    assert tomllib.loads(changed)["mcp_servers"] == {"a": {"command": "x"}, "bridgehead": ENTRY}
    assert tomllib.loads(remove_table(changed, PATH)) == tomllib.loads(text)
    assert tomllib.loads(remove_table(text, ("mcp_servers", "a"))).get("mcp_servers", {}) == {}
    assert ("# all in one" in changed) == ("# all in one" in text)


def test_a_value_is_changed_in_its_place() -> None:
    text = "[groups.a]\nenabled = true  # on weekdays\nmembers = [\n  { backend = 'x' }, # one\n]\n\n[groups.b]\n"

    assert put_value(text, ("groups", "a", "enabled"), False) == text.replace("true", "false")
    added = put_value(text, ("groups", "b", "enabled"), False)
    assert added == text + "enabled = false\n"


def test_long_tables_get_headers_of_their_own() -> None:
    env = {f"VARIABLE_NUMBER_{number}": "a value of some length" for number in range(3)}

    text = rendered_table(("backends", "x y"), {"env": env, "command": "run"})

    assert text.startswith('[backends."x y"]\ncommand = "run"\n\n[backends."x y".env]\nVARIABLE_NUMBER_0 = ')
    assert tomllib.loads(text)["backends"]["x y"]["env"] == env


@pytest.mark.parametrize("text", ["a = ", "[a", "mcp_servers = 1", "[[mcp_servers]]\na = 1\n"])
def test_what_is_no_such_file_is_refused(text: str) -> None:
    with pytest.raises(TomlUneditable):
        put_table(text, PATH, ENTRY)
