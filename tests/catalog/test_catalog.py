"""Names, clashes, groups, views and swaps."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.catalog import BUILTIN, BackendStatus, Catalog, Listing, Part, Rules, Snapshot, State
from bridgehead.catalog.merge import merge, risk_of
from bridgehead.catalog.model import template_makes
from bridgehead.catalog.names import exposed_name, with_tail
from bridgehead.config import GroupMember, GroupSettings
from bridgehead.core import Risk

ANYTHING = st.text(st.characters(exclude_categories=()), max_size=100) | st.text("ab_-", max_size=8)
CONFIGURED = st.text("ab_-", min_size=1, max_size=6) | st.from_regex(r"[A-Za-z0-9_-]{1,70}", fullmatch=True)


def tools(*names: str) -> Listing:
    return Listing(tools=tuple({"name": name} for name in names))


def snapshot_of(listings: dict[str, Listing], **rules: Any) -> Snapshot:
    settings: dict[str, Any] = {
        "order": tuple(listings),
        "unprefixed": frozenset[str](),
        "groups": {},
        "ungrouped": True,
        **rules,
    }
    return merge(1, listings, Rules(**settings))


def group(*members: GroupMember, enabled: bool = True) -> GroupSettings:
    return GroupSettings(enabled=enabled, members=members)


# Names


@given(CONFIGURED, ANYTHING, st.booleans())
def test_every_name_is_legal_and_the_same_on_every_run(backend: str, name: str, prefixed: bool) -> None:
    for exposed in (
        exposed_name(backend, name, prefixed=prefixed),
        with_tail(backend, name, prefixed=prefixed, attempt=3),
    ):
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", exposed)
    assert exposed_name(backend, name, prefixed=prefixed) == exposed_name(backend, name, prefixed=prefixed)


@given(st.sets(st.tuples(CONFIGURED, ANYTHING), min_size=2, max_size=8))
def test_two_tools_never_have_one_name(pairs: set[tuple[str, str]]) -> None:
    assert len({exposed_name(*pair) for pair in pairs}) == len(pairs)


@pytest.mark.parametrize(
    ("one", "other"), [(("a_", "b"), ("a", "_b")), (("a__b", "c"), ("a", "b__c")), (("a", "x.y"), ("a", "x_y"))]
)
def test_pairs_that_would_read_alike_are_told_apart(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert exposed_name(*one) != exposed_name(*other)


def test_a_legal_name_is_prefixed_and_nothing_else() -> None:
    assert exposed_name("fs", "read_file") == "fs__read_file"
    assert exposed_name("fs", "read_file", prefixed=False) == "read_file"


@given(st.dictionaries(CONFIGURED, st.lists(ANYTHING, max_size=6), max_size=4), st.booleans())
def test_nothing_that_is_listed_gets_lost(names: dict[str, list[str]], unprefixed: bool) -> None:
    listings = {backend: tools(*listed) for backend, listed in names.items()}
    view = snapshot_of(listings, unprefixed=frozenset(names if unprefixed else ())).everything
    found = {(entry.backend, entry.name) for entry in view.tools.values()}
    assert found == {(backend, name) for backend, listed in names.items() for name in listed}
    assert all(entry.shown["name"] == entry.exposed == exposed for exposed, entry in view.tools.items())


# Merging


def test_the_order_in_which_backends_came_up_does_not_matter() -> None:
    one, other = tools("x"), tools("x")
    rules = {"order": ("a", "b"), "unprefixed": frozenset({"a", "b"})}
    assert (
        snapshot_of({"a": one, "b": other}, **rules).everything
        == snapshot_of({"b": other, "a": one}, **rules).everything
    )


def test_with_namespace_none_the_first_backend_keeps_the_name_and_the_clash_is_told() -> None:
    snapshot = snapshot_of({"a": tools("x"), "b": tools("x", "y")}, unprefixed=frozenset({"a", "b"}))
    assert snapshot.everything.tools["x"].backend == "a"
    assert snapshot.everything.tools[with_tail("b", "x", prefixed=False)].backend == "b"
    assert snapshot.everything.tools["y"].backend == "b"
    assert len(snapshot.warnings) == 1


def test_no_backend_takes_the_name_of_a_built_in_tool() -> None:
    snapshot = snapshot_of({"a": tools("guidance"), BUILTIN: tools("guidance")}, unprefixed=frozenset({"a"}))
    assert snapshot.everything.tools["guidance"].backend == BUILTIN


def test_a_tool_that_is_really_called_like_a_tail_does_not_swallow_another() -> None:
    taken = with_tail("b", "x", prefixed=False)
    snapshot = snapshot_of({"a": tools("x", taken), "b": tools("x")}, unprefixed=frozenset({"a", "b"}))
    assert len(snapshot.everything.tools) == 3


def test_of_two_tools_with_one_name_in_one_backend_the_first_is_kept() -> None:
    listing = Listing(tools=({"name": "x", "title": "first"}, {"name": "x", "title": "second"}))
    snapshot = snapshot_of({"a": listing})
    assert [entry.original["title"] for entry in snapshot.everything.tools.values()] == ["first"]
    assert "more than once" in snapshot.warnings[0]


def test_the_same_uri_in_several_backends_stays_readable_in_each() -> None:
    listing = Listing(resources=({"uri": "mem://1"},))
    snapshot = snapshot_of({"a": listing, "x_y": listing, "x-y": listing})
    owners = {uri: entry.backend for uri, entry in snapshot.everything.resources.items()}
    assert owners["mem://1"] == "a"
    assert owners["x-y+mem://1"] == "x_y"
    assert sorted(owners.values()) == ["a", "x-y", "x_y"]
    assert all(uri.endswith("mem://1") for uri in owners)


def test_definitions_that_cannot_be_named_are_left_out() -> None:
    odd: Any = ({"name": 3}, {}, {"name": "x"})
    assert list(snapshot_of({"a": Listing(tools=odd)}).everything.tools) == ["a__x"]


@pytest.mark.parametrize(
    ("annotations", "risk"),
    [
        (None, Risk.DESTRUCTIVE),
        ("odd", Risk.DESTRUCTIVE),
        ({}, Risk.DESTRUCTIVE),
        ({"readOnlyHint": True}, Risk.READ),
        ({"readOnlyHint": "true"}, Risk.DESTRUCTIVE),
        ({"destructiveHint": False}, Risk.WRITE),
        ({"readOnlyHint": False, "destructiveHint": True}, Risk.DESTRUCTIVE),
    ],
)
def test_a_tool_is_as_dangerous_as_its_annotations_leave_open(annotations: object, risk: Risk) -> None:
    assert risk_of({"annotations": annotations}) is risk


# Groups and views


def test_a_group_takes_names_prefixes_globs_or_everything() -> None:
    listing = {"a": tools("get_x", "set_x", "run", "other"), "b": tools("y")}
    groups = {
        "some": group(GroupMember(backend="a", prefixes=("get_",), names=("run",), globs=("se?_*",))),
        "all": group(GroupMember(backend="b")),
    }
    snapshot = snapshot_of(listing, groups=groups)
    assert set(snapshot.by_group["some"].tools) == {"a__get_x", "a__set_x", "a__run"}
    assert set(snapshot.by_group["all"].tools) == {"b__y"}


@pytest.mark.parametrize(
    ("ungrouped", "visible"), [(True, {"a__on", "a__both", "a__free"}), (False, {"a__on", "a__both"})]
)
def test_a_tool_is_visible_by_its_groups_or_the_rule_for_those_in_none(ungrouped: bool, visible: set[str]) -> None:
    groups = {
        "open": group(GroupMember(backend="a", names=("on", "both"))),
        "shut": group(GroupMember(backend="a", names=("off", "both")), enabled=False),
    }
    snapshot = snapshot_of({"a": tools("on", "both", "off", "free")}, groups=groups, ungrouped=ungrouped)
    assert set(snapshot.everything.tools) == visible
    assert snapshot.hidden == 4 - len(visible)
    assert snapshot.view("shut") is None
    assert [one.name for one in snapshot.groups] == ["open", "shut"]


def test_built_in_tools_are_in_every_view() -> None:
    groups = {"empty": group(), "shut": group(GroupMember(backend=BUILTIN), enabled=False)}
    snapshot = snapshot_of({BUILTIN: tools("guidance")}, groups=groups, ungrouped=False)
    assert set(snapshot.by_group["empty"].tools) == set(snapshot.everything.tools) == {"guidance"}


def test_resources_and_prompts_follow_their_backends_tools() -> None:
    listing = Listing(tools=({"name": "x"},), resources=({"uri": "m:1"},), prompts=({"name": "p"},))
    groups = {"g": group(GroupMember(backend="b"))}
    snapshot = snapshot_of({"a": listing, "b": tools("y")}, groups=groups)
    assert not snapshot.by_group["g"].resources
    assert set(snapshot.everything.prompts) == {"a__p"}
    shut = snapshot_of({"a": listing}, groups={"g": group(GroupMember(backend="a"), enabled=False)})
    assert not shut.everything.resources
    assert not shut.everything.prompts


def test_a_backend_that_lists_nothing_is_in_the_view_of_everything() -> None:
    assert snapshot_of({"a": Listing()}).everything.backends == {"a"}


@pytest.mark.parametrize(
    ("template", "uri", "made"),
    [
        ("db://{t}/rows", "db://x/rows", True),
        ("db://{t}/rows", "db://x/cols", False),
        ("db://{t}", "db://", True),
        ("a{x}a", "a", False),
        ("{+path}", "anything", True),
        ("a.b", "axb", False),
        ("{a}/{b}/{c}", "1/2", False),
        ("{a}/{b}/{c}", "1/2/3/4", True),
    ],
)
def test_a_template_makes_the_uris_it_could_make(template: str, uri: str, made: bool) -> None:
    assert template_makes(template, uri) is made


@given(st.text("ab{}", max_size=12), st.text("ab", max_size=12))
def test_a_template_is_read_like_a_pattern_of_wildcards(template: str, uri: str) -> None:
    parts = re.split(r"(\{[^{}]*\})", template)
    pattern = "".join(".*" if part.startswith("{") and part.endswith("}") else re.escape(part) for part in parts)
    assert template_makes(template, uri) is (re.fullmatch(pattern, uri, re.DOTALL) is not None)


# Swaps


def test_publishing_tells_what_changed_and_leaves_old_snapshots_alone() -> None:
    catalog = Catalog(Rules(order=("a",), unprefixed=frozenset(), groups={}, ungrouped=True))
    told: list[frozenset[Part]] = []
    end = catalog.subscribe(told.append)
    before = catalog.snapshot
    catalog.publish("a", tools("x"))
    catalog.publish("a", tools("x"))
    catalog.publish("a", Listing(tools=({"name": "x"},), prompts=({"name": "p"},)))
    catalog.publish("a", Listing(tools=({"name": "x"},), prompts=({"name": "p"},), stale=True))
    end()
    catalog.publish("a", tools("y"))
    assert told == [frozenset({Part.TOOLS}), frozenset({Part.PROMPTS})]
    assert not before.everything.tools
    assert catalog.snapshot.version > before.version


# Other rules


def other_rules(*order: str, **more: Any) -> Rules:
    return replace(Rules(order=order, unprefixed=frozenset(), groups={}, ungrouped=True), **more)


def test_other_rules_are_one_swap_that_forgets_who_is_not_configured_any_more() -> None:
    catalog = Catalog(other_rules("one", "two", "three"))
    for name in ("one", "two", "three"):
        catalog.publish(name, tools("echo"))
        catalog.report(BackendStatus(name, State.READY, datetime.now(UTC)))
    before, told = catalog.snapshot, list[frozenset[Part]]()
    catalog.subscribe(told.append)

    catalog.change(other_rules("three", "one", unprefixed=frozenset({"three"})), doubt=["one"])

    assert catalog.snapshot.version == before.version + 1
    assert list(catalog.snapshot.everything.tools) == ["echo", "one__echo"]
    assert catalog.snapshot.listings["one"].stale
    assert not catalog.snapshot.listings["three"].stale
    assert list(catalog.statuses) == ["three", "one"]
    assert told == [{Part.TOOLS}]
    assert list(before.everything.tools) == ["one__echo", "two__echo", "three__echo"]


def test_a_listing_that_is_forgotten_leaves_the_status() -> None:
    catalog = Catalog(other_rules("one"))
    catalog.publish("one", tools("echo"))
    catalog.report(BackendStatus("one", State.STARTING, datetime.now(UTC)))

    catalog.change(other_rules("one"), forget=["one"])

    assert not catalog.snapshot.everything.tools
    assert list(catalog.statuses) == ["one"]


def test_the_same_rules_again_are_no_swap() -> None:
    catalog = Catalog(other_rules("one"))
    catalog.publish("one", tools("echo"))
    before = catalog.snapshot

    catalog.change(other_rules("one"))

    assert catalog.snapshot is before


def test_a_group_whose_view_alone_changed_is_told_of_too() -> None:
    member = GroupMember(backend="one")
    catalog = Catalog(other_rules("one", "two", groups={"g": group(member)}))
    catalog.publish("one", Listing(tools=({"name": "echo"},), prompts=({"name": "greet"},)))
    catalog.publish("two", Listing(tools=({"name": "echo"},), prompts=({"name": "greet"},)))
    told = list[frozenset[Part]]()
    catalog.subscribe(told.append)

    catalog.change(other_rules("one", "two", groups={"g": group(member, GroupMember(backend="two"))}))

    assert told == [{Part.TOOLS, Part.PROMPTS}]
