"""What environment variables change, and what they are told when they change nothing."""

from pathlib import Path

import pytest

from bridgehead.config import Settings, load
from bridgehead.core.errors import ConfigInvalid

TEXT = """
[server]
port = 4000
[backends.a]
command = "x"
args = ["${BRIDGEHEAD_DEMO_BIN:-}", "${BRIDGEHEAD_OTHER}"]
[groups.agentic-flow]
enabled = false
members = [{ backend = "a" }]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "bridgehead.toml"
    file.write_text(TEXT)
    return file


def refusal(file: Path, environ: dict[str, str]) -> str:
    with pytest.raises(ConfigInvalid) as caught:
        load(file, environ)
    return caught.value.sentence()


def port(settings: Settings) -> tuple[int, str]:
    return settings.server.port, settings.origin("server.port")


def test_the_more_specific_name_wins(file: Path) -> None:
    environ: dict[str, str] = {}
    assert port(load(file, environ)) == (4000, "bridgehead.toml")
    environ["PORT"] = "5000"
    assert port(load(file, environ)) == (5000, "environment PORT")
    environ["BRIDGEHEAD_PORT"] = "0"
    assert port(load(file, environ)) == (0, "environment BRIDGEHEAD_PORT")
    environ["BRIDGEHEAD_SERVER_PORT"] = "7000"
    assert port(load(file, environ)) == (7000, "environment BRIDGEHEAD_SERVER_PORT")


def test_an_empty_variable_counts_as_unset(file: Path) -> None:
    assert port(load(file, {"PORT": ""})) == (4000, "bridgehead.toml")


def test_values_are_read_as_what_their_key_wants(file: Path) -> None:
    settings = load(
        file,
        {
            "BRIDGEHEAD_HOST": "::1",
            "BRIDGEHEAD_LOG_LEVEL": "DEBUG",
            "BRIDGEHEAD_ALLOWED_HOSTS": "a.example, b.example",
            "BRIDGEHEAD_SHUTDOWN_GRACE_S": "2.5",
            "BRIDGEHEAD_CALLS_PER_MINUTE": "30",
            "BRIDGEHEAD_LIMITS_RESULT_BYTES": "1000",
        },
    )

    assert (settings.server.host, settings.server.log_level) == ("::1", "debug")
    assert settings.server.allowed_hosts == ("a.example", "b.example")
    assert settings.server.shutdown_grace_s == 2.5
    assert (settings.limits.calls_per_minute, settings.limits.result_bytes) == (30, 1000)
    assert settings.origin("limits.calls_per_minute") == "environment BRIDGEHEAD_CALLS_PER_MINUTE"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PORT", "http", "environment PORT: server.port must be a whole number"),
        ("BRIDGEHEAD_PORT", "70000", "environment BRIDGEHEAD_PORT: server.port must be 65535 or less"),
        ("BRIDGEHEAD_UNGROUPED", "no", "environment BRIDGEHEAD_UNGROUPED: server.ungrouped must be one of"),
        ("BRIDGEHEAD_LOG_LEVEL", "loud", "server.log_level must be one of 'debug', 'info', 'warning' or 'error'"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_its_variable(file: Path, name: str, value: str, words: str) -> None:
    sentence = refusal(file, {name: value})

    assert words in sentence
    assert "70000" not in sentence


@pytest.mark.parametrize("word", ["true", "1", "yes", "on", "TRUE", "Yes", " on "])
def test_a_group_is_switched_on_by_any_word_for_it(file: Path, word: str) -> None:
    settings = load(file, {"MCP_GROUP_AGENTIC_FLOW": word})

    assert settings.groups["agentic-flow"].enabled
    assert settings.origin("groups.agentic-flow.enabled") == "environment MCP_GROUP_AGENTIC_FLOW"


@pytest.mark.parametrize("word", ["false", "0", "no", "off", "FALSE", "Off"])
def test_a_group_is_switched_off_by_any_word_for_it(file: Path, word: str) -> None:
    file.write_text(TEXT.replace("false", "true"))

    assert not load(file, {"MCP_GROUP_AGENTIC_FLOW": word}).groups["agentic-flow"].enabled


@pytest.mark.parametrize("word", ["", "maybe", "2", "enabled", "ja"])
def test_any_other_word_is_refused_with_the_words_that_are_not(file: Path, word: str) -> None:
    sentence = refusal(file, {"MCP_GROUP_AGENTIC_FLOW": word})

    assert "environment MCP_GROUP_AGENTIC_FLOW: must be one of true, 1, yes, on, false, 0, no, off" in sentence


def test_a_switch_for_a_group_that_is_not_there_is_a_warning_with_the_nearest(file: Path) -> None:
    settings = load(file, {"MCP_GROUP_AGENTICFLOW": "true", "MCP_GROUP_ZZZ": "1"})

    assert settings.warnings == (
        "MCP_GROUP_AGENTICFLOW is ignored, since it names no group; did you mean MCP_GROUP_AGENTIC_FLOW?",
        "MCP_GROUP_ZZZ is ignored, since it names no group; known are MCP_GROUP_AGENTIC_FLOW.",
    )


def test_an_unknown_variable_of_ours_is_a_warning_with_the_nearest(file: Path) -> None:
    settings = load(file, {"BRIDGEHEAD_PROT": "1", "BRIDGEHEAD_DEMO_BIM": "x", "PROT": "1"})

    assert settings.warnings == (
        "BRIDGEHEAD_DEMO_BIM is ignored, since it is no variable of Bridgehead; did you mean BRIDGEHEAD_DEMO_BIN?",
        "BRIDGEHEAD_PROT is ignored, since it is no variable of Bridgehead; did you mean BRIDGEHEAD_PORT?",
    )


def test_variables_that_are_read_elsewhere_are_known(file: Path) -> None:
    environ: dict[str, str] = dict.fromkeys(
        (
            "BRIDGEHEAD_CONFIG",
            "BRIDGEHEAD_STATE_DIR",
            "BRIDGEHEAD_TOKEN",
            "BRIDGEHEAD_URL",
            "BRIDGEHEAD_DEBUG",
            "BRIDGEHEAD_DEMO_BIN",
            "BRIDGEHEAD_OTHER",
        ),
        "x",
    )

    assert load(file, environ).warnings == ()


def test_the_file_can_be_named_by_a_variable(file: Path, tmp_path: Path) -> None:
    assert load(None, {"BRIDGEHEAD_CONFIG": str(file)}).source == file
    with pytest.raises(ConfigInvalid, match=r"There is no file .*nope\.toml"):
        load(None, {"BRIDGEHEAD_CONFIG": str(tmp_path / "nope.toml")})


def test_the_environment_alone_is_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert port(load(None, {"HOME": str(tmp_path), "PORT": "5000"})) == (5000, "environment PORT")
