"""Reading a file: what is refused, in which words, and where each value came from."""

import os
from pathlib import Path

import pytest

from bridgehead.config import ServerSettings, Settings, load
from bridgehead.core.errors import ConfigInvalid


def read(directory: Path, text: str, environ: dict[str, str] | None = None, name: str = "bridgehead.toml") -> Settings:
    file = directory / name
    file.write_text(text, encoding="utf-8")
    return load(file, environ or {})


def refusal(directory: Path, text: str, environ: dict[str, str] | None = None, name: str = "bridgehead.toml") -> str:
    with pytest.raises(ConfigInvalid) as caught:
        read(directory, text, environ, name)
    assert caught.value.code == "invalid_config"
    assert caught.value.hint is not None
    return caught.value.sentence()


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    settings = read(tmp_path, "")

    assert (settings.server.host, settings.server.port, settings.server.ungrouped) == ("127.0.0.1", 3001, "show")
    assert (settings.server.max_body_bytes, settings.limits.result_bytes) == (16 * 1024**2, 8 * 1024**2)
    assert (settings.limits.calls_per_minute, settings.limits.backend_concurrency) == (0, 64)
    assert settings.origin("server.port") == "default"
    assert settings.warnings == ("bridgehead.toml configures no backend.",)


def test_a_backend_keeps_its_name_its_directory_and_its_order(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        """
        [backends.zeta]
        command = "zeta"
        args = ["--fast"]
        env = { PORT = 3000, DEBUG = true }
        tool_timeouts_s = { slow = 300 }
        [backends."my.alpha"]
        url = "https://example.com/mcp"
        transport = "sse"
        """,
    )

    assert list(settings.backends) == ["zeta", "my.alpha"]
    zeta = settings.backends["zeta"]
    assert (zeta.name, zeta.directory, zeta.args) == ("zeta", tmp_path, ("--fast",))
    assert {key: secret.reveal() for key, secret in zeta.env.items()} == {"PORT": "3000", "DEBUG": "true"}
    assert zeta.tool_timeouts_s == {"slow": 300.0}
    assert settings.origin('backends."my.alpha".url') == "bridgehead.toml"
    assert settings.origin("backends.zeta.env.PORT") == "bridgehead.toml"
    assert settings.origin("backends.zeta.timeout_s") == "default"


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        ServerSettings().port = 1  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[server]\nprot = 1", "bridgehead.toml: server.prot is not a known key; did you mean `port`?"),
        ("[limit]\n", "limit is not a known key; did you mean `limits`?"),
        ("port = 1", "port is not a known key; did you mean `server.port`?"),
        ("[server]\nzzz = 1", "server.zzz is not a known key; known are host, port,"),
        ('[backends.a]\ncommand = "x"\nenviron = {}', "backends.a.environ is not a known key; did you mean `env`?"),
        ('[backends.a]\ncommand = "x"\nname = "b"', "backends.a.name is not a known key"),
        ('[backends.a]\ncommand = "x"\ndirectory = "/"', "backends.a.directory is not a known key"),
        (
            '[groups.a]\nmembers = [{ backend = "builtin", prefix = ["x"] }]',
            "groups.a.members[0].prefix is not a known key; did you mean `prefixes`?",
        ),
        ("[server]\nport = 65536", "server.port must be 65535 or less"),
        ("[server]\nport = -1", "server.port must be 0 or more"),
        ('[server]\nport = "80"', "server.port must be a whole number"),
        ("[server]\nport = true", "server.port must be a whole number"),
        ('[server]\nungrouped = "maybe"', "server.ungrouped must be one of 'show' or 'hide'"),
        ('[server]\nallowed_hosts = "a"', "server.allowed_hosts must be a list"),
        ('[server]\nhost = ""', "server.host must not be empty"),
        ("server = 1", "server must be a table"),
        ("backends = []", "backends must be a table"),
        ("[backends]\na = 1", "backends.a must be a table"),
        ("[backends.a]", "backends.a needs `command` (a program to start) or `url`"),
        ('[backends.a]\ncommand = "x"\nurl = "http://x"', "backends.a has both `command` and `url`"),
        ('[backends.a]\ncommand = "x"\nheaders = {}', "backends.a has `command`, so `headers` cannot be there"),
        ('[backends.a]\nurl = "http://x"\nargs = ["y"]', "backends.a has `url`, so `args` cannot be there"),
        (
            '[backends.a]\ncommand = "x"\nforward_headers = ["X-A"]',
            "backends.a has `command`, so `forward_headers` cannot be there",
        ),
        (
            '[backends.a]\nurl = "http://x"\nforward_headers = ["authorization"]',
            "the caller's token is for this bridge",
        ),
        ('[backends.a]\nurl = "http://x"\nforward_headers = ["Cookie"]', "is never forwarded"),
        ('[backends.a]\nurl = "http://x"\nforward_headers = ["HOST"]', "is never forwarded"),
        ('[backends.a]\nurl = "http://x"\nforward_headers = ["Mcp-Session-Id"]', "the caller's own connection"),
        ('[backends.a]\nurl = "http://x"\nforward_headers = ["Content-Type"]', "the caller's own connection"),
        ('[backends.a]\nurl = "http://x"\nforward_headers = ["Proxy-Authorization"]', "the caller's own connection"),
        ('[backends.a]\nurl = "http://x"\nforward_headers = ["X A"]', "cannot be the name of an HTTP header"),
        ('[backends.a]\nurl = "http://x"\nforward_headers = ["X-A", "x-a"]', "twice"),
        (
            '[backends.a]\nurl = "http://x"\nheaders = { X-A = "1" }\nforward_headers = ["x-a"]',
            "in `forward_headers` and in `headers`",
        ),
        ('[backends.a]\nurl = "http://x"\nmax_message_bytes = 0', "max_message_bytes"),
        ('[backends.a]\nurl = "ftp://x"', "backends.a needs a `url` that begins with http:// or https://"),
        ('[backends.a]\ncommand = "x"\ntimeout_s = 0', "backends.a.timeout_s must be more than 0"),
        ('[backends.a]\ncommand = "x"\ntimeout_s = nan', "backends.a.timeout_s must be"),
        ('[backends.a]\ncommand = "x"\nenabled = 1', "backends.a.enabled must be true or false"),
        ('[backends.a]\ncommand = "x"\nenv = { A = [] }', "backends.a.env.A must be text"),
        ('[backends.a]\ncommand = "x"\nenv = { "A=B" = "" }', "cannot be the name of an environment variable"),
        ('[backends.a]\nurl = "http://x"\nheaders = { "A B" = "" }', "cannot be the name of an HTTP header"),
        ('[backends."a/b"]\ncommand = "x"', 'backends."a/b" is not a name for a backend'),
        ('[backends.""]\ncommand = "x"', 'backends."" is not a name for a backend'),
        ('[backends.builtin]\ncommand = "x"', "backends.builtin is the name of the backend that Bridgehead itself is"),
        ("[groups.Work]", "groups.Work is not a name for a group: use lower-case letters"),
        ("[groups.a]\nmembers = [{}]", "groups.a.members[0].backend is required"),
        (
            '[groups.a]\nmembers = [{ backend = "builtin", prefixes = [""] }]',
            "groups.a.members[0].prefixes[0] must not be empty",
        ),
        (
            '[backends.github]\ncommand = "x"\n[groups.a]\nmembers = [{ backend = "gihtub" }]',
            "groups.a.members[0].backend names the backend `gihtub`, which is not configured; did you mean `github`?",
        ),
    ],
)
def test_a_mistake_is_refused_by_its_full_key_and_its_remedy(tmp_path: Path, text: str, words: str) -> None:
    sentence = refusal(tmp_path, text)

    assert words in sentence
    assert "bridgehead config check" in sentence


def test_all_problems_are_reported_together(tmp_path: Path) -> None:
    text = '[server]\nprot = 1\n[limits]\nresult_bytes = 0\n[backends.a]\nurl = "x"\ncommand = "y"\nzzz = 1\n[groups.B]'

    with pytest.raises(ConfigInvalid) as caught:
        read(tmp_path, text, {"MCP_GROUP_B": "maybe"})

    assert "has 6 problems" in caught.value.message
    problems = caught.value.details["problems"]
    assert [problem["key"] for problem in problems] == [
        "",
        "server.prot",
        "limits.result_bytes",
        "backends.a.zzz",
        "backends.a",
        "groups.B",
    ]
    assert problems[0]["where"] == "environment MCP_GROUP_B"
    assert all(problem["message"] in caught.value.message for problem in problems)


def test_a_name_may_be_any_printable_text(tmp_path: Path) -> None:
    settings = read(tmp_path, '[backends.bridgehead]\ncommand = "x"\n[backends."Zoë’s tools"]\ncommand = "x"')

    assert list(settings.backends) == ["bridgehead", "Zoë’s tools"]


@pytest.mark.parametrize(
    ("text", "place"),
    [("a = 1\nb = = 2", "line 2, column 5"), ("a = 1\nb = ", "line 2, column 5"), ("a = 1\na = 2", "line 2, column 6")],
)
def test_bad_toml_is_refused_by_line_and_column(tmp_path: Path, text: str, place: str) -> None:
    assert f"bridgehead.toml, {place}: this is not TOML: " in refusal(tmp_path, text)


def test_bad_json_is_refused_by_line_and_column(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, '{\n  "mcpServers": {},\n}', name="mcp.json")

    assert "mcp.json, line " in sentence
    assert ": this is not JSON: " in sentence
    assert "commas at the end" in sentence


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        load(tmp_path / "nope.toml", {})

    assert str(tmp_path / "nope.toml") in caught.value.message
    assert "--config" in (caught.value.hint or "")


def test_a_directory_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="is a directory") as caught:
        load(tmp_path, {})

    assert str(tmp_path / "bridgehead.toml") in (caught.value.hint or "")


def test_a_file_that_is_not_utf_8_says_from_where(tmp_path: Path) -> None:
    file = tmp_path / "bridgehead.toml"
    file.write_bytes(b"# \xff")

    with pytest.raises(ConfigInvalid, match="is not UTF-8, from byte 2 on"):
        load(file, {})


@pytest.mark.parametrize("text", ["a = " + "[" * 5_000, "a = " + "1" * 5_000])
def test_a_file_that_is_no_configuration_by_any_measure_is_refused(tmp_path: Path, text: str) -> None:
    assert "bridgehead.toml is nested too deeply, or holds a number that is too long" in refusal(tmp_path, text)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions are looked at where there are POSIX ones")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "bridgehead.toml"
    file.touch(mode=0)
    own = os.geteuid()
    if own == 0:
        # Root may read everything, so somebody else reads.
        os.seteuid(65_534)
    try:
        with pytest.raises(ConfigInvalid, match="cannot be read: Permission denied"):
            load(file, {})
    finally:
        os.seteuid(own)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeff[server]\nport = 1").server.port == 1


def test_the_working_directory_is_looked_in_before_the_xdg_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, xdg = tmp_path / "here", tmp_path / "xdg"
    here.mkdir()
    (xdg / "bridgehead").mkdir(parents=True)
    (xdg / "bridgehead" / "bridgehead.toml").write_text("[server]\nport = 2")
    monkeypatch.chdir(here)

    assert load(None, {"XDG_CONFIG_HOME": str(xdg)}).server.port == 2
    (here / "bridgehead.toml").write_text("[server]\nport = 1")
    assert load(None, {"XDG_CONFIG_HOME": str(xdg)}).server.port == 1


def test_no_file_at_all_is_a_warning_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    settings = load(None, {"HOME": str(tmp_path)})

    assert settings.source is None
    assert not settings.backends
    assert str(tmp_path / ".config" / "bridgehead" / "bridgehead.toml") in settings.warnings[0]
    assert "--config" in settings.warnings[0]


def test_a_backend_that_nobody_can_see_is_a_warning(tmp_path: Path) -> None:
    text = '[server]\nungrouped = "hide"\n[backends.a]\ncommand = "x"\n[groups.b]'

    assert read(tmp_path, text).warnings == (
        "groups.b has no members, so it holds no tool.",
        'backends.a is in no group and `server.ungrouped` is "hide", so no tool of it is visible: name it in a group.',
    )
