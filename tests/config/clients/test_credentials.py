"""What is lifted out of a backend, and what is left in it."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.config.clients.credentials import Lifting, masked, secret_name

GITHUB = "ghp_" + "a1B2" * 9
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
RANDOM = "f3A9k2LmQ8xZ7cV5bN1wE4rT6yU0"


def lift(table: dict[str, Any], known: dict[str, str] | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    lifting = Lifting("shop", (known or {}).get)
    return lifting.table(table), lifting.secrets


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("GITHUB_TOKEN", "short"),
        ("OPENAI_API_KEY", "sk-proj-abc"),
        ("PGPASSWORD", "hunter2"),
        ("DB_PASSWORD", "123456"),
        ("AWS_SECRET_ACCESS_KEY", "/Ab9cd/Ef1ghIjKlMnOpQrStUvWxYz0123456789"),
        ("DATABASE_URL", "postgres://ann:pw@db.example/shop"),
        ("SLACK_WEBHOOK_URL", "https://hooks.slack.example/services/T0/B0/xyz"),
        ("ANYTHING", GITHUB),
        ("ANYTHING", JWT),
        ("ANYTHING", RANDOM),
        ("ANYTHING", "123e4567-e89b-12d3-a456-426614174000"),
        ("SERVICE_ACCOUNT", '{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIE"}'),
    ],
)
def test_a_variable_that_is_a_credential_is_lifted_whole(key: str, value: str) -> None:
    table, secrets = lift({"command": "x", "env": {key: value}})

    assert secrets == {f"SHOP_{key}": value}
    assert table["env"] == {key: f"${{secret:SHOP_{key}}}"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("PATH", "/usr/bin:/bin"),
        ("MAX_TOKENS", "4096"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/ann/key.json"),
        ("KEY_FILE", "~/keys/one.pem"),
        ("PRIVATE_KEY_PATH", "C:\\Users\\ann\\key.pem"),
        ("TOKEN_URL", "https://login.example/oauth/token"),
        ("API_KEY", "${API_KEY}"),
        ("API_KEY", "prefix-${API_KEY}"),
        ("API_KEY", ""),
        ("MODEL", "claude-sonnet-4-5-20250929"),
        ("PACKAGE", "@modelcontextprotocol/server-filesystem"),
        ("MONKEY", "banana"),
        ("TITLE", "Basic auth server"),
        ("AUTHOR", "Ann"),
    ],
)
def test_what_is_no_credential_stays(key: str, value: str) -> None:
    table = {"command": "x", "env": {key: value}}

    assert lift(table) == (table, {})


@pytest.mark.parametrize(
    ("args", "lifted", "values"),
    [
        (["--api-key", "abc"], ["--api-key", "${secret:SHOP_API_KEY}"], ["abc"]),
        (["--token=abc"], ["--token=${secret:SHOP_TOKEN}"], ["abc"]),
        (["-e", "API_KEY=abc"], ["-e", "API_KEY=${secret:SHOP_API_KEY}"], ["abc"]),
        (
            ["--header", "Authorization: Bearer abc"],
            ["--header", "Authorization: Bearer ${secret:SHOP_AUTHORIZATION}"],
            ["abc"],
        ),
        (["--header=X-Api-Key: abc"], ["--header=X-Api-Key: ${secret:SHOP_X_API_KEY}"], ["abc"]),
        ([GITHUB], ["${secret:SHOP_ARG}"], [GITHUB]),
        (
            ["postgres://ann:p%40ss@db/shop"],
            ["postgres://ann:${secret:SHOP_PASSWORD}@db/shop"],
            ["p%40ss"],
        ),
        (["--token", "--verbose", "/key/path", "C:\\key", "image:tag"], None, []),
        (["-e", "API_KEY", "--token"], None, []),
        (["--token", "${TOKEN}"], None, []),
    ],
)
def test_arguments_are_looked_at_one_by_one(args: list[str], lifted: list[str] | None, values: list[str]) -> None:
    table, secrets = lift({"command": "x", "args": args})

    assert table["args"] == (lifted or args)
    assert list(secrets.values()) == values


@pytest.mark.parametrize(
    ("url", "lifted", "values"),
    [
        (
            "https://x.example/mcp?api_key=abc&page=2",
            "https://x.example/mcp?api_key=${secret:SHOP_API_KEY}&page=2",
            ["abc"],
        ),
        ("https://ann:pw@x.example/mcp#top", "https://ann:${secret:SHOP_PASSWORD}@x.example/mcp#top", ["pw"]),
        (f"https://x.example/s/{RANDOM}/mcp", "https://x.example/s/${secret:SHOP_URL_PATH}/mcp", [RANDOM]),
        (
            f"https://{GITHUB}:x-oauth@x.example",
            "https://${secret:SHOP_USER}:${secret:SHOP_PASSWORD}@x.example",
            [GITHUB, "x-oauth"],
        ),
        (f"https://{GITHUB}@x.example", "https://${secret:SHOP_USER}@x.example", [GITHUB]),
        ("https://ann:${PW}@x.example/mcp", "https://ann:${PW}@x.example/mcp", []),
        ("https://ann@x.example/mcp?page=2", "https://ann@x.example/mcp?page=2", []),
        ("https://${HOST:-x.example}/mcp?key=${KEY}", "https://${HOST:-x.example}/mcp?key=${KEY}", []),
    ],
)
def test_a_url_keeps_all_but_its_credentials(url: str, lifted: str, values: list[str]) -> None:
    table, secrets = lift({"url": url})

    assert table["url"] == lifted
    assert list(secrets.values()) == values


PIECES = st.sampled_from(
    [
        *(
            GITHUB,
            RANDOM,
            JWT,
            "--token",
            "--header",
            "-e",
            "Authorization",
            ": ",
            "Bearer ",
            "=",
            "PASSWORD",
            "api_key",
        ),
        *("https://", "ann:pw@", "x.example", "/", "?", "&", "#", "@", ":", "${X}", "${Y:-z}", "12345", "1234567890"),
        *(" ", "{", '"', "a"),
    ]
)
TEXTS = st.lists(PIECES, max_size=8).map("".join)


@given(
    st.fixed_dictionaries(
        {
            "env": st.dictionaries(PIECES, TEXTS, max_size=3),
            "headers": st.dictionaries(PIECES, TEXTS, max_size=3),
            "args": st.lists(TEXTS, max_size=4),
            "url": TEXTS,
        }
    )
)
def test_with_its_secrets_filled_in_a_backend_is_what_it_was(table: dict[str, Any]) -> None:
    lifted, secrets = lift(table)

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(r"\$\{secret:(\w+)\}", lambda found: secrets[found[1]], value)
        if isinstance(value, dict):
            return {key: filled(one) for key, one in cast("dict[str, Any]", value).items()}
        return [filled(one) for one in cast("list[Any]", value)]

    assert filled(lifted) == table
    assert not any("${" in value for value in secrets.values())


def test_the_scheme_of_a_header_stays() -> None:
    table, secrets = lift({"url": "https://x.example", "headers": {"authorization": "Basic YTpi", "X-Region": "eu"}})

    assert table["headers"] == {"authorization": "Basic ${secret:SHOP_AUTHORIZATION}", "X-Region": "eu"}
    assert secrets == {"SHOP_AUTHORIZATION": "YTpi"}


def test_a_literal_dollar_is_stored_as_it_is() -> None:
    assert lift({"command": "x", "env": {"PASSWORD": "a$${b"}})[1] == {"SHOP_PASSWORD": "a${b"}


def test_a_name_that_has_another_value_gets_a_number() -> None:
    known = {"SHOP_TOKEN": "other", "SHOP_TOKEN_2": "abc"}

    table, secrets = lift({"command": "x", "env": {"TOKEN": "abc"}}, known)

    assert table["env"] == {"TOKEN": "${secret:SHOP_TOKEN_2}"}
    assert secrets == {"SHOP_TOKEN_2": "abc"}


@pytest.mark.parametrize(
    ("backend", "key", "name"),
    [
        ("github", "GITHUB_TOKEN", "GITHUB_TOKEN"),
        ("my-docs", "Authorization", "MY_DOCS_AUTHORIZATION"),
        ("7zip", "key", "SECRET_7ZIP_KEY"),
        ("数", "key", "KEY"),
        ("x" * 80, "token", "X" * 60),
    ],
)
def test_secrets_are_called_after_their_backend(backend: str, key: str, name: str) -> None:
    assert secret_name(backend, key) == name


def test_what_is_shown_hides_what_looks_like_a_credential() -> None:
    shown = masked(
        f'+ "Authorization": "Bearer abcdefgh", "API_KEY": "abcdefgh", "x": "{GITHUB}", "url": "https://a/b"'
    )

    assert shown == '+ "Authorization": "Bearer ***", "API_KEY": "***", "x": "***", "url": "https://a/b"'
