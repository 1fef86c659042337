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
    SecretReader,
    SecretsUnusable,
    StdioLaunch,
    load,
    resolve,
    secrets_of,
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


# Secrets


class Kept:
    """A store of secrets that is a dictionary, and counts what it is asked."""

    def __init__(self, **values: str) -> None:
        self.values = values
        self.asked: list[str] = []

    def read(self, name: str) -> str | None:
        self.asked.append(name)
        return self.values.get(name)


class Locked:
    def read(self, name: str) -> str | None:
        raise SecretsUnusable(f"The keyring did not answer for {name}.", hint="unlock it.")


def backend(**fields: Any) -> BackendSettings:
    return BackendSettings.model_validate({"name": "a"} | ({} if "url" in fields else {"command": "x"}) | fields)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${secret:A}", "one"),
        ("<${secret:A}-${secret:A}>", "<one-one>"),
        ("${secret:A-b.c_1}", "two"),
        ("${secret:A:-other}", "one"),
        ("${secret:B:-other}", "other"),
        ("${secret:B:-}", ""),
        ("$${secret:A}", "${secret:A}"),
        ("${secret:TRICK}", "${secret:A}"),
        ("${A}", "of the environment"),
    ],
)
def test_a_secret_is_filled_in(text: str, filled: str) -> None:
    store = Kept(**{"A": "one", "A-b.c_1": "two", "TRICK": "${secret:A}"})

    launch = resolve(backend(args=[text]), {"A": "of the environment"}, store).launch

    assert isinstance(launch, StdioLaunch)
    assert launch.args == (filled,)


def test_a_secret_works_wherever_a_placeholder_does(tmp_path: Path) -> None:
    store = Kept(X="v", DIR=str(tmp_path))

    program = backend(command="${secret:X}", args=["${secret:X}"], env={"K": "${secret:X}"}, cwd="${secret:DIR}/sub")
    server = backend(url="https://${secret:X}/", headers={"K": "Bearer ${secret:X}"})

    assert resolve(program, {}, store).launch == StdioLaunch("v", ("v",), {"K": Secret("v")}, tmp_path / "sub")
    assert resolve(server, {}, store).launch == HttpLaunch("https://v/", {"K": Secret("Bearer v")})
    assert secrets_of(program) == ("X", "DIR")
    assert secrets_of(server) == ("X",)


def test_a_secret_is_read_once_for_a_backend_and_anew_for_the_next() -> None:
    store = Kept(X="v")

    for _ in range(2):
        resolve(backend(args=["${secret:X}", "${secret:X}", "$${secret:Y}"], env={"K": "${secret:X}"}), {}, store)

    assert store.asked == ["X", "X"]


def test_what_may_be_shown_of_a_launch_has_the_placeholders_of_secrets_in_it() -> None:
    resolved = resolve(
        backend(command="${secret:X}", args=["-k=${secret:X}", "${E}", "${secret:N:-d}"]), {"E": "e"}, Kept(X="hunter2")
    )

    assert resolved.written == StdioLaunch("${secret:X}", ("-k=${secret:X}", "e", "${secret:N}"))
    assert resolved.secrets == (Secret("hunter2"),)
    assert "hunter2" not in repr(resolved)


def test_a_missing_secret_is_named_with_its_field_and_the_command_that_sets_it() -> None:
    with pytest.raises(MissingPlaceholder) as caught:
        resolve(backend(url="https://x", headers={"Authorization": "Bearer ${secret:GH}"}), {}, Kept())

    assert caught.value.message == "The secret GH (in backends.a.headers.Authorization) is not set."
    assert caught.value.hint == "run `bridgehead secret set GH`."
    assert caught.value.details == {
        "missing": [],
        "missing_secrets": [{"secret": "GH", "field": "backends.a.headers.Authorization"}],
    }


def test_missing_variables_and_secrets_are_named_together() -> None:
    with pytest.raises(MissingPlaceholder) as caught:
        resolve(backend(args=["${V}", "${secret:S}", "${secret:T}", "${secret:S}"]), {}, Kept())

    assert caught.value.message == (
        "V (in backends.a.args[0]) and the secret S (in backends.a.args[1]) and the secret T (in backends.a.args[2])"
        " and the secret S (in backends.a.args[3]) are not set."
    )
    assert caught.value.hint == (
        "set V in the environment of the bridge, or give a default as in `${V:-…}`,"
        " and run `bridgehead secret set S` and `bridgehead secret set T`."
    )


@pytest.mark.parametrize("text", ["${secret:A}", "${secret:A:-default}"])
def test_a_store_that_cannot_be_read_is_neither_a_missing_secret_nor_a_default(text: str) -> None:
    with pytest.raises(LaunchInvalid) as caught:
        resolve(backend(env={"K": text}), {}, Locked())

    assert not isinstance(caught.value, MissingPlaceholder)
    assert caught.value.message == "backends.a.env.K needs the secret A. The keyring did not answer for A."
    assert caught.value.hint == "unlock it."
    assert caught.value.details["field"] == "backends.a.env.K"


@pytest.mark.parametrize("text", ["${secret:}", "${secret:a b}", "${secret:a/b}", "${secret:é}", "${Secret:A}"])
def test_what_only_looks_like_a_secret_is_refused(text: str) -> None:
    with pytest.raises(LaunchInvalid, match="looks like a placeholder and is none") as caught:
        resolve(backend(args=[text]), {}, Kept())

    assert "`${secret:NAME}`" in (caught.value.hint or "")


@pytest.mark.parametrize("store", [Kept(C="hunter2\n"), Kept(C="ftp://hunter2")])
def test_an_error_about_what_a_secret_holds_does_not_hold_it(store: SecretReader) -> None:
    with pytest.raises(LaunchInvalid) as caught:
        resolve(backend(url="${secret:C}"), {}, store)
    assert "hunter2" not in repr(caught.value) + str(caught.value.as_dict())

    with pytest.raises(LaunchInvalid) as caught:
        resolve(backend(url="https://x", headers={"K": "${secret:C}\r"}), {}, store)
    assert "hunter2" not in repr(caught.value) + str(caught.value.as_dict())
