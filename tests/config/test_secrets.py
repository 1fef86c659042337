"""A secret is shown to nobody."""

import copy
import json
import pickle
import traceback
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bridgehead.config import BackendSettings, LaunchInvalid, Secret, Settings, load, resolve, show
from bridgehead.core.errors import ConfigInvalid

# Longer than what could be in the text around it by accident.
secrets = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n${}*"), min_size=12).map(
    lambda t: f"s3cr3t{t}"
)


@given(secrets)
def test_no_way_of_showing_settings_shows_a_secret(text: str) -> None:
    url = BackendSettings(name="u", url=f"https://user:{'pass'}@x/?key=word", headers={"K": Secret(text)})
    settings = Settings(backends={"u": url, "c": BackendSettings(name="c", command="x", env={"K": Secret(text)})})
    launches = [resolve(backend, {}).launch for backend in settings.backends.values()]

    shown = "".join(
        (
            repr(settings),
            str(settings),
            f"{settings!s}{launches!r}",
            settings.model_dump_json(),
            repr(settings.model_dump()),
            json.dumps(show(settings), ensure_ascii=False),
        )
    )

    assert text not in shown
    assert "s3cr3t" not in shown


@given(st.text())
def test_a_secret_prints_as_stars_and_gives_its_text_to_who_asks(text: str) -> None:
    secret = Secret(text)

    assert {str(secret), repr(secret), f"{secret}", f"{secret:>40}", "%s" % secret} == {"***"}  # noqa: UP031
    assert secret.reveal() == text
    assert secret == Secret(text)
    assert hash(secret) == hash(Secret(text))
    assert secret != Secret(text + "x")
    assert secret != text


def test_a_secret_cannot_be_written_by_accident() -> None:
    secret = Secret("hunter2")

    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        json.dumps({"a": secret})
    with pytest.raises(TypeError):
        orjson.dumps({"a": secret})
    with pytest.raises(TypeError):
        _ = "a" + secret  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType]
    assert not hasattr(secret, "__dict__")


def test_a_copy_of_a_secret_is_the_secret() -> None:
    secret = Secret("hunter2")

    assert copy.copy(secret) is secret
    assert copy.deepcopy({"a": secret})["a"] is secret


def test_a_refused_configuration_shows_no_value(tmp_path: Path) -> None:
    file = tmp_path / "bridgehead.toml"
    file.write_text('[backends.a]\ncommand = ["hunter2"]\nenv = { A = ["hunter2"], B = "hunter2" }\nurl = 5')
    environ = {"PORT": "hunter2"}

    with pytest.raises(ConfigInvalid) as caught:
        load(file, environ)

    assert "hunter2" not in "".join(traceback.format_exception(caught.value)) + repr(caught.value.as_dict())


def test_a_refused_model_shows_no_value() -> None:
    with pytest.raises(ValidationError) as caught:
        BackendSettings.model_validate({"command": "x", "env": {"A": ["hunter2"]}})

    assert "hunter2" not in str(caught.value)


def test_a_refused_launch_shows_no_value() -> None:
    backend = BackendSettings(name="a", url="${URL}", headers={"A": Secret("${TOKEN}")})
    environ = {"URL": "hunter2", "TOKEN": "hunter2"}

    with pytest.raises(LaunchInvalid) as caught:
        resolve(backend, environ)

    assert "hunter2" not in "".join(traceback.format_exception(caught.value)) + repr(caught.value.as_dict())


def test_what_a_placeholder_put_into_a_url_or_an_argument_is_not_shown() -> None:
    backends = (BackendSettings(url="https://x/?k=${K}"), BackendSettings(command="x", args=("--key=${K}",)))

    assert all("hunter2" not in repr(resolve(backend, {"K": "hunter2"})) for backend in backends)
