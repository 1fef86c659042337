"""The local token, who it makes of a caller, and what that caller may do."""

import os
import stat
from pathlib import Path

import pytest

from bridgehead.core import Caller, CallerId, Risk
from bridgehead.core.errors import ConfigInvalid, Unauthenticated
from bridgehead.identity import LOCAL_OWNER, Authenticator, OwnerPolicy, ensure_local_token

TOKEN = "t" * 43


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_token_is_made_once_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    state = tmp_path / "deep" / "state"
    token = ensure_local_token(state)
    assert len(token) >= 43
    assert ensure_local_token(state) == token
    assert mode(state) == 0o700
    assert mode(state / "local-token") == 0o600
    assert [path.name for path in state.iterdir()] == ["local-token"]


def test_two_states_have_two_tokens(tmp_path: Path) -> None:
    assert ensure_local_token(tmp_path / "a") != ensure_local_token(tmp_path / "b")


def test_permissions_that_became_too_open_are_put_right(tmp_path: Path) -> None:
    token = ensure_local_token(tmp_path)
    tmp_path.chmod(0o755)
    (tmp_path / "local-token").chmod(0o644)
    assert ensure_local_token(tmp_path) == token
    assert mode(tmp_path) == 0o700
    assert mode(tmp_path / "local-token") == 0o600


def test_a_link_in_the_tokens_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(TOKEN)
    (tmp_path / "local-token").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigInvalid):
        ensure_local_token(tmp_path)


@pytest.mark.parametrize("text", ["", "short", "with space " * 10])
def test_a_damaged_token_is_refused_and_never_shown(tmp_path: Path, text: str) -> None:
    (tmp_path / "local-token").write_text(text)
    with pytest.raises(ConfigInvalid) as caught:
        ensure_local_token(tmp_path)
    assert not text or text not in caught.value.sentence()


@pytest.mark.skipif(os.name != "posix", reason="a file in the directory's place reads otherwise elsewhere")
def test_a_file_in_the_directorys_place_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(ConfigInvalid):
        ensure_local_token(tmp_path / "state")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_local_token_makes_the_local_owner(scheme: str) -> None:
    assert Authenticator(TOKEN).caller(f"{scheme} {TOKEN}", peer_is_loopback=True) == LOCAL_OWNER


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer é\udcff"]
)
def test_anything_else_is_refused_with_a_way_on(header: str | None) -> None:
    with pytest.raises(Unauthenticated) as caught:
        Authenticator(TOKEN).caller(header, peer_is_loopback=True)
    assert caught.value.hint
    assert TOKEN not in caught.value.sentence()


def test_the_local_token_is_no_good_from_another_machine() -> None:
    with pytest.raises(Unauthenticated):
        Authenticator(TOKEN).caller(f"Bearer {TOKEN}", peer_is_loopback=False)


def test_the_local_owner_may_do_everything_and_nobody_else_anything() -> None:
    stranger = Caller(CallerId("stranger"), "local owner")
    assert all(OwnerPolicy().allows(LOCAL_OWNER, risk) for risk in Risk)
    assert not any(OwnerPolicy().allows(stranger, risk) for risk in Risk)
