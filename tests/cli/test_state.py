"""Where a bridge is looked for, and where the local token may go."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridgehead.cli.state import TOKEN_FILE, AddressInvalid, Target, default_state_dir, find_bridge
from bridgehead.identity import ensure_local_token


def test_the_state_directory_follows_the_environment() -> None:
    home = Path.home() / ".local" / "state" / "bridgehead"

    assert default_state_dir({}) == home
    assert default_state_dir({"XDG_STATE_HOME": "/x"}) == Path("/x/bridgehead")
    assert default_state_dir({"XDG_STATE_HOME": "relative"}) == home
    assert default_state_dir({"XDG_STATE_HOME": "/x", "BRIDGEHEAD_STATE_DIR": "/mine"}) == Path("/mine")


def test_the_token_file_is_the_one_that_the_bridge_makes(tmp_path: Path) -> None:
    token = ensure_local_token(tmp_path)

    assert (tmp_path / TOKEN_FILE).exists()
    assert find_bridge(None, tmp_path, {}).token == token


def test_the_address_that_serve_wrote_comes_before_the_port(tmp_path: Path) -> None:
    assert find_bridge(None, tmp_path, {}).url == "http://127.0.0.1:3001"
    assert find_bridge(None, tmp_path, {"PORT": "4000"}).url == "http://127.0.0.1:4000"
    (tmp_path / "address").write_text("http://127.0.0.1:5000\n")
    assert find_bridge(None, tmp_path, {"PORT": "4000"}).url == "http://127.0.0.1:5000"
    assert find_bridge("http://localhost:6000/", tmp_path, {}).url == "http://localhost:6000"


def test_the_local_token_stays_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / TOKEN_FILE).write_text("secret")

    assert find_bridge("http://127.0.0.1:1", tmp_path, {}).token == "secret"
    assert find_bridge("http://[::1]:1", tmp_path, {}).token == "secret"
    for elsewhere in ("https://bridge.example", "http://127.0.0.1.example:1", "http://localhost.example"):
        assert find_bridge(elsewhere, tmp_path, {}) == Target(elsewhere, None)
    assert find_bridge("https://bridge.example", tmp_path, {"BRIDGEHEAD_TOKEN": "theirs"}).token == "theirs"


@pytest.mark.parametrize("url", ["x", "ftp://127.0.0.1", "http://", "http://127.0.0.1:99999", "http://[::1"])
def test_what_is_no_url_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(AddressInvalid):
        find_bridge(url, tmp_path, {})
