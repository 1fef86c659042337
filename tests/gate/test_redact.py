"""What the audit log keeps of arguments."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.gate import redact, redact_text

ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.builds(object),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers() | st.none(), inner)
        | st.tuples(inner)
        | st.frozensets(st.text())
    ),
    max_leaves=50,
)


@pytest.mark.parametrize(
    "key",
    [
        "password", "db_password", "passphrase", "token", "access_token", "accessToken", "secret", "client_secret",
        "api_key", "apiKey", "X-API-Key", "Authorization", "cookie", "Set-Cookie", "credentials", "private_key", "privateKey",
    ],
)  # fmt: skip
def test_a_key_that_looks_secret_hides_its_value(key: str) -> None:
    assert redact({key: "hunter2"}) == {key: "***"}
    assert redact({"in": [{key: {"deep": "hunter2"}}]}) == {"in": [{key: "***"}]}


@pytest.mark.parametrize(
    "key", ["max_tokens", "maxTokens", "page_token", "nextPageToken", "author", "passage", "path", "keyword"]
)
def test_a_key_that_only_sounds_like_one_does_not(key: str) -> None:
    assert redact({key: "abc"}) == {key: "abc"}


@pytest.mark.parametrize(
    "secret",
    [
        "Bearer abcdefgh12345678",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "sk-proj-abcdefgh12345678",
        "ghp_abcdefghijklmnopqrst",
        "github_pat_abcdefghijklmnopqrst",
        "AKIAABCDEFGHIJKLMNOP",
        "xoxb-1234-abcdefgh",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_a_value_that_looks_like_a_secret_is_hidden_wherever_it_stands(secret: str) -> None:
    shown = redact_text(f"curl -H '{secret}' and {secret} again")
    assert secret not in shown
    assert shown.startswith("curl -H '***")


def test_a_password_in_a_url_is_hidden() -> None:
    assert redact_text("postgres://me:hunter2@host/db?x=1") == "postgres://***@host/db?x=1"
    assert "abc123" not in redact_text("https://host/path?token=abc123&x=1")


def test_long_text_is_cut_and_says_by_how_much() -> None:
    shown = redact_text("é" * 600)
    assert shown == "é" * 512 + "… [88 of 600 characters cut]"


def test_a_secret_across_the_cut_does_not_show_its_beginning() -> None:
    assert "sk-" not in redact_text("x" * 500 + " sk-" + "a" * 40)


def test_depth_and_breadth_are_bounded() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    assert len(json.dumps(redact(loop))) < 1000
    wide = redact({"list": list(range(1000)), **{f"k{n}": n for n in range(1000)}})
    assert len(json.dumps(wide)) < 5000
    assert "937 of 1001 entries cut" in wide["…"]


@given(ODD)
def test_nothing_breaks_it_and_what_comes_out_is_json(value: object) -> None:
    json.dumps(redact({"value": value}))
    json.dumps(redact(value))
