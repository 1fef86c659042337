"""Placeholders filled in, and the errors that concern one backend only."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.config import (
    BackendSettings,
    HttpLaunch,
    LaunchInvalid,
    MissingPlaceholder,
    Secret,
    StdioLaunch,
    load,
    resolve,
)
from bridgehead.config.placeholders import escape
from bridgehead.core.errors import ConfigInvalid


def program(environ: dict[str, str] | None = None, **fields: Any) -> StdioLaunch:
    backend = BackendSettings.model_validate({"name": "a", "command": "x"} | fields)
    launch = resolve(backend, environ or {}).launch
    assert isinstance(launch, StdioLaunch)
    return launch


def server(environ: dict[str, str] | None = None, **fields: Any) -> HttpLaunch:
    backend = BackendSettings.model_validate({"name": "a", "url": "https://x/mcp"} | fields)
    launch = resolve(backend, environ or {}).launch
    assert isinstance(launch, HttpLaunch)
    return launch


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${A}", "one"),
        ("${env:A}", "one"),
        ("<${A}${A}>", "<oneone>"),
        ("${A:-two}", "one"),
        ("${B:-two}", "two"),
        ("${env:B:-two}", "two"),
        ("${B:-}", ""),
        ("${EMPTY:-two}", "two"),
        ("${EMPTY}", ""),
        ("${B:-a:-b}", "a:-b"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$A {A} $ {A}", "$A {A} $ {A}"),
        ("${TRICK}", "${A}"),
    ],
)
def test_a_placeholder_becomes_its_value(text: str, filled: str) -> None:
    environ = {"A": "one", "EMPTY": "", "TRICK": "${A}"}

    assert program(environ, args=[text]).args == (filled,)


@given(st.text())
def test_an_escaped_text_comes_back_as_it_was(text: str) -> None:
    secrets = program(env={"X": escape(text).replace("\0", "")}).env

    assert secrets["X"].reveal() == text.replace("\0", "")


@given(st.dictionaries(st.sampled_from("ABC"), st.text(st.characters(exclude_characters="\0"))))
def test_a_value_is_put_in_as_it_is_whatever_it_holds(environ: dict[str, str]) -> None:
    text = "|".join(f"${{{name}}}" for name in environ)

    assert program(environ, args=[text]).args == ("|".join(environ.values()),)


def test_every_text_of_a_backend_is_filled_in(tmp_path: Path) -> None:
    environ = {"X": "v", "DIR": str(tmp_path)}

    launch = program(environ, command="${X}", args=["${X}"], env={"K": "${X}"}, cwd="${DIR}/sub")
    assert launch == StdioLaunch("v", ("v",), {"K": Secret("v")}, tmp_path / "sub")
    assert server(environ, url="https://${X}/", headers={"K": "Bearer ${X}"}, transport="sse") == HttpLaunch(
        "https://v/", {"K": Secret("Bearer v")}, "sse"
    )


def test_a_missing_variable_is_named_with_its_field() -> None:
    backend = BackendSettings(
        name="github", url="https://x", headers={"Authorization": Secret("Bearer ${GITHUB_TOKEN}")}
    )

    with pytest.raises(MissingPlaceholder) as caught:
        resolve(backend, {})

    assert caught.value.message == "GITHUB_TOKEN (in backends.github.headers.Authorization) is not set."
    assert "set GITHUB_TOKEN in the environment" in (caught.value.hint or "")
    assert caught.value.details["missing"] == [
        {"variable": "GITHUB_TOKEN", "field": "backends.github.headers.Authorization"}
    ]


def test_all_missing_variables_are_named_together() -> None:
    with pytest.raises(MissingPlaceholder) as caught:
        program({}, command="${A}", args=["${B}${B}", "${A}"])

    assert caught.value.message == (
        "A (in backends.a.command) and B (in backends.a.args[0]) and A (in backends.a.args[1]) are not set."
    )


@pytest.mark.parametrize("text", ["${", "${}", "${A", "${1A}", "${A-B}", "${A:-${B}}", "${A:=x}"])
def test_what_only_looks_like_a_placeholder_is_refused_by_its_field(text: str) -> None:
    with pytest.raises(LaunchInvalid) as caught:
        program({"A": "x"}, args=["fine", text])

    assert "backends.a.args[1]" in caught.value.message
    assert "`${NAME:-default}`" in (caught.value.hint or "")


def test_an_input_of_vs_code_is_told_what_to_become() -> None:
    with pytest.raises(LaunchInvalid) as caught:
        program({}, args=["${input:github-token}"])

    assert "asks for the input `github-token`, which only VS Code can ask" in caught.value.message
    assert "write `${NAME}` there instead" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("url", "value"),
    [
        ("${U}", "ftp://x"),
        ("${U}", ""),
        ("${U}", "https://"),
        ("${U}/mcp", "file://x"),
        ("https://${U}/", "x:port"),
        ("https://x/${U}", "a b"),
    ],
)
def test_a_url_that_turns_out_to_be_no_http_url_is_refused(url: str, value: str) -> None:
    with pytest.raises(LaunchInvalid) as caught:
        server({"U": value}, url=url)

    assert "backends.a.url is not an http or https URL" in caught.value.message
    assert "https://example.com/mcp" in (caught.value.hint or "")


@pytest.mark.parametrize("character", ["\r", "\n", "\0"])
def test_a_header_cannot_smuggle_another_in(character: str) -> None:
    with pytest.raises(LaunchInvalid, match=r"backends\.a\.headers\.Authorization holds a line break") as caught:
        server({"T": f"x{character}Evil: 1"}, headers={"Authorization": "${T}"})

    assert "Evil" not in caught.value.sentence()


def test_a_command_that_turns_out_to_be_empty_is_refused() -> None:
    with pytest.raises(LaunchInvalid, match=r"backends\.a\.command is empty"):
        program({"C": ""}, command="${C}")


def test_such_an_error_is_still_an_error_of_the_configuration() -> None:
    assert issubclass(MissingPlaceholder, LaunchInvalid)
    assert issubclass(LaunchInvalid, ConfigInvalid)
    assert len({error.code for error in (MissingPlaceholder, LaunchInvalid, ConfigInvalid)}) == 3


@pytest.mark.parametrize(("cwd", "expected"), [("sub", "conf/sub"), ("/abs", "/abs"), ("~", "home"), ("~/s", "home/s")])
def test_a_working_directory_starts_at_the_file_or_at_home(tmp_path: Path, cwd: str, expected: str) -> None:
    (tmp_path / "conf").mkdir()
    file = tmp_path / "conf" / "bridgehead.toml"
    file.write_text(f'[backends.a]\ncommand = "~/bin/x"\ncwd = "{cwd}"')

    backend = load(file, {}).backends["a"]
    launch = resolve(backend, {"HOME": str(tmp_path / "home")}).launch

    assert isinstance(launch, StdioLaunch)
    assert launch.cwd == tmp_path / expected
    assert launch.command == str(tmp_path / "home/bin/x")


def test_without_a_working_directory_a_program_starts_where_the_bridge_was_started() -> None:
    assert program().cwd is None
