"""The contract of `Secrets`, on the sealed file and on a keyring, and what is particular to each."""

from __future__ import annotations

import base64
import json
import multiprocessing
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import keyring
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from keyring.backend import KeyringBackend
from keyring.backends.chainer import ChainerBackend
from keyring.backends.fail import Keyring as FailKeyring
from keyring.backends.null import Keyring as NullKeyring

from bridgehead.config import SecretInvalid, Secrets, SecretsUnusable
from bridgehead.store.secrets import OnDemand, OsKeyring, SealedFile, open_store
from tests.store.keyrings import HangingKeyring, LockedKeyring, MemoryKeyring, WeakKeyring

Open = Callable[[], Secrets]
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=200)


@pytest.fixture(autouse=True)
def no_keyring() -> Iterator[None]:
    """Whatever this machine has, nothing of it is touched."""
    keyring.set_keyring(FailKeyring())
    yield
    keyring.set_keyring(FailKeyring())


def having(ring: KeyringBackend) -> KeyringBackend:
    keyring.set_keyring(ring)
    return ring


def os_keyring(state_dir: Path) -> OsKeyring:
    return OsKeyring(state_dir, patience_s=5)


@pytest.fixture(params=["file", "keyring"])
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the same store again each time, as another process would."""
    having(MemoryKeyring())
    return (lambda: SealedFile(tmp_path)) if request.param == "file" else (lambda: os_keyring(tmp_path))


# The contract


def test_a_value_comes_back_under_its_name_and_no_other(reopened: Open) -> None:
    reopened().write("GITHUB_TOKEN", "hunter2")

    assert reopened().read("GITHUB_TOKEN") == "hunter2"
    assert reopened().read("github_token") is None
    assert reopened().names() == ["GITHUB_TOKEN"]


def test_there_is_nothing_at_first(reopened: Open) -> None:
    store = reopened()

    assert (store.read("A"), store.names(), store.remove("A")) == (None, [], False)


def test_a_later_value_takes_the_place_of_an_earlier_one(reopened: Open) -> None:
    store = reopened()
    store.write("A", "one")
    store.write("A", "two")

    assert (store.read("A"), store.names()) == ("two", ["A"])


def test_what_is_removed_is_gone_and_the_others_stay(reopened: Open) -> None:
    for name in ("b.b", "A", "c-c"):
        reopened().write(name, f"value of {name}")

    assert reopened().remove("A")
    assert not reopened().remove("A")
    assert reopened().names() == ["b.b", "c-c"]
    assert reopened().read("A") is None
    assert reopened().read("c-c") == "value of c-c"


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(VALUES)
def test_a_value_comes_back_as_it_was_whatever_it_holds(reopened: Open, value: str) -> None:
    reopened().write("A", value)

    assert reopened().read("A") == value


@pytest.mark.parametrize("name", ["", "a b", "a/b", "../key", "é", "a" * 65, "A\n"])
def test_what_is_no_name_is_refused_without_being_repeated(reopened: Open, name: str) -> None:
    with pytest.raises(SecretInvalid) as caught:
        reopened().write(name, "hunter2")

    assert not name.strip() or name.strip() not in caught.value.message.split()
    assert reopened().names() == []


@pytest.mark.parametrize("value", ["", "a\0b", "\ud800", "é" * 40_000])
def test_what_is_no_value_is_refused_and_the_earlier_one_kept(reopened: Open, value: str) -> None:
    reopened().write("A", "hunter2")

    with pytest.raises(SecretInvalid) as caught:
        reopened().write("A", value)

    assert caught.value.hint
    assert reopened().read("A") == "hunter2"


def test_two_state_directories_share_nothing(tmp_path: Path, reopened: Open) -> None:
    store = reopened()
    store.write("A", "mine")
    other = tmp_path / "other"

    theirs = SealedFile(other) if store.kind == "file" else os_keyring(other)

    assert (theirs.read("A"), theirs.names()) == (None, [])


def test_everything_written_is_for_the_owner_alone_and_holds_no_value(tmp_path: Path, reopened: Open) -> None:
    reopened().write("A", "hunter2hunter2")
    folder = tmp_path / "secrets"

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert [path for path in folder.iterdir() if b"hunter2" in path.read_bytes()] == []
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == [], "no draft is left behind"


def test_permissions_that_became_too_open_are_put_right(tmp_path: Path, reopened: Open) -> None:
    reopened().write("A", "hunter2")
    for path in (tmp_path / "secrets").iterdir():
        path.chmod(0o644)
    (tmp_path / "secrets").chmod(0o755)

    reopened().write("B", "hunter3")

    read = {"sealed.json", "key", "keyring.json", "store"}
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "secrets").iterdir() if path.name in read}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"version": 1}', b'{"version": 1, "secrets": 3}', b"\xff"]
)
def test_a_damaged_file_is_an_error_and_is_left_as_it_is(tmp_path: Path, reopened: Open, content: bytes) -> None:
    store = reopened()
    store.write("A", "hunter2")
    file = tmp_path / "secrets" / ("sealed.json" if store.kind == "file" else "keyring.json")
    file.write_bytes(content)

    for attempt in (store.names, lambda: store.read("A"), lambda: store.write("B", "x"), lambda: store.remove("A")):
        with pytest.raises(SecretsUnusable, match=r"\.json is damaged\. It was left as it is\."):
            attempt()

    assert file.read_bytes() == content


def test_a_file_of_a_newer_bridge_is_left_alone(tmp_path: Path, reopened: Open) -> None:
    store = reopened()
    store.write("A", "hunter2")
    file = tmp_path / "secrets" / ("sealed.json" if store.kind == "file" else "keyring.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 2}))
    before = file.read_bytes()

    with pytest.raises(SecretsUnusable, match="newer bridgehead"):
        store.write("B", "x")

    assert file.read_bytes() == before


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path, reopened: Open) -> None:
    store = reopened()
    store.write("A", "hunter2")
    file = tmp_path / "secrets" / ("sealed.json" if store.kind == "file" else "keyring.json")
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(SecretsUnusable, match="cannot be read"):
        store.names()


# The sealed file


def _write_some(state_dir: Path, writer: int) -> None:
    store = SealedFile(state_dir)
    for number in range(5):
        store.write(f"W{writer}.{number}", f"value {writer} {number}")


def test_writers_in_several_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    processes = multiprocessing.get_context("fork" if os.name == "posix" else "spawn")
    writers = [processes.Process(target=_write_some, args=(tmp_path, writer)) for writer in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)

    store = SealedFile(tmp_path)
    assert {name: store.read(name) for name in store.names()} == {
        f"W{writer}.{number}": f"value {writer} {number}" for writer in range(4) for number in range(5)
    }


def test_without_its_key_nothing_is_opened_written_or_lost(tmp_path: Path) -> None:
    store = SealedFile(tmp_path)
    store.write("A", "hunter2")
    key, sealed = tmp_path / "secrets" / "key", tmp_path / "secrets" / "sealed.json"
    kept, before = key.read_bytes(), sealed.read_bytes()
    key.unlink()

    for attempt in (lambda: store.read("A"), lambda: store.write("B", "x")):
        with pytest.raises(SecretsUnusable, match=r"the key .*key is gone"):
            attempt()
    assert store.names() == ["A"]
    assert not key.exists()
    assert sealed.read_bytes() == before

    key.write_bytes(kept)
    assert store.read("A") == "hunter2"


@pytest.mark.parametrize("content", [bytes(32), b"short"])
def test_another_key_is_told_from_a_damaged_value(tmp_path: Path, content: bytes) -> None:
    store = SealedFile(tmp_path)
    store.write("A", "hunter2")
    (tmp_path / "secrets" / "key").write_bytes(content)

    for attempt in (lambda: store.read("A"), lambda: store.write("B", "x")):
        with pytest.raises(SecretsUnusable, match="is not the one they were sealed with"):
            attempt()


def test_after_the_last_secret_is_removed_a_lost_key_is_made_anew(tmp_path: Path) -> None:
    store = SealedFile(tmp_path)
    store.write("A", "hunter2")
    (tmp_path / "secrets" / "key").unlink()

    assert store.remove("A")
    store.write("B", "hunter3")

    assert store.read("B") == "hunter3"


def test_a_value_cannot_be_passed_off_as_that_of_another_name(tmp_path: Path) -> None:
    store = SealedFile(tmp_path)
    store.write("HARMLESS", "hunter2")
    store.write("POWERFUL", "hunter3")
    file = tmp_path / "secrets" / "sealed.json"
    table = json.loads(file.read_text())
    table["secrets"]["HARMLESS"] = table["secrets"]["POWERFUL"]
    file.write_text(json.dumps(table))

    with pytest.raises(SecretsUnusable, match=r"The secret HARMLESS in .* is damaged"):
        store.read("HARMLESS")


@pytest.mark.parametrize("damage", ["!", "", base64.b64encode(b"x").decode(), "A" * 80])
def test_one_damaged_value_is_an_error_of_its_own_and_can_be_set_again(tmp_path: Path, damage: str) -> None:
    store = SealedFile(tmp_path)
    store.write("A", "hunter2")
    store.write("B", "hunter3")
    file = tmp_path / "secrets" / "sealed.json"
    table = json.loads(file.read_text())
    table["secrets"]["A"] = damage
    file.write_text(json.dumps(table))

    with pytest.raises(SecretsUnusable, match=r"The secret A in .* is damaged") as caught:
        store.read("A")
    assert "bridgehead secret set A" in (caught.value.hint or "")
    assert store.read("B") == "hunter3"

    store.write("A", "hunter4")
    assert (store.read("A"), store.read("B")) == ("hunter4", "hunter3")


def test_equal_values_are_not_seen_to_be_equal(tmp_path: Path) -> None:
    store = SealedFile(tmp_path)
    store.write("A", "hunter2")
    store.write("B", "hunter2")

    sealed = json.loads((tmp_path / "secrets" / "sealed.json").read_text())["secrets"]
    assert sealed["A"] != sealed["B"]


def test_a_state_directory_that_cannot_be_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(SecretsUnusable) as caught:
        SealedFile(tmp_path / "file").write("A", "hunter2")

    assert "--state-dir" in (caught.value.hint or "")


# The keyring


@pytest.mark.parametrize("ring", [FailKeyring, NullKeyring, WeakKeyring], ids=["fail", "null", "weak"])
def test_a_keyring_that_keeps_nothing_or_is_not_recommended_is_none(tmp_path: Path, ring: type[KeyringBackend]) -> None:
    having(ring())

    with pytest.raises(SecretsUnusable, match="no keyring that can be used") as caught:
        os_keyring(tmp_path)
    assert 'secret_store = "file"' in (caught.value.hint or "")


def test_a_plain_text_keyring_is_none_however_it_ranks_itself(tmp_path: Path) -> None:
    plaintext = type("PlaintextKeyring", (MemoryKeyring,), {"__module__": "keyrings.alt.file", "priority": 9})
    heir = type("OurKeyring", (plaintext,), {"__module__": "our.own"})

    for ring in (plaintext, heir):
        having(ring())
        with pytest.raises(SecretsUnusable, match="no keyring that can be used"):
            os_keyring(tmp_path)


def test_of_a_chain_the_first_good_keyring_is_used_and_no_other(tmp_path: Path) -> None:
    plaintext = type("PlaintextKeyring", (MemoryKeyring,), {"__module__": "keyrings.alt.file", "priority": 9})()
    good, second = MemoryKeyring(), MemoryKeyring()
    having(type("Chain", (ChainerBackend,), {"viable": False, "backends": [plaintext, WeakKeyring(), good, second]})())

    os_keyring(tmp_path).write("A", "hunter2")

    assert list(good.entries.values()) == ["hunter2"]
    assert plaintext.entries == second.entries == {}


def test_a_locked_keyring_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    having(LockedKeyring())

    with pytest.raises(SecretsUnusable, match=r"cannot be used \(KeyringLocked\)") as caught:
        os_keyring(tmp_path)
    assert 'secret_store = "file"' in (caught.value.hint or "")


def test_a_keyring_that_hangs_is_given_up_once_and_not_asked_again_meanwhile(tmp_path: Path) -> None:
    ring = HangingKeyring()
    ring.let_go.set()
    having(ring)
    store = OsKeyring(tmp_path, patience_s=0.05)
    store.write("A", "hunter2")
    ring.let_go.clear()
    asked = ring.asked

    for _ in range(3):
        with pytest.raises(SecretsUnusable, match=r"did not answer within 0\.05 s"):
            store.read("A")
    assert ring.asked == asked + 1

    ring.let_go.set()
    stuck = store._patience._stuck
    assert stuck is not None
    stuck.join(10)
    assert store.read("A") == "hunter2"


def test_a_lost_list_of_names_does_not_lose_the_values(tmp_path: Path) -> None:
    having(MemoryKeyring())
    os_keyring(tmp_path).write("A", "hunter2")
    (tmp_path / "secrets" / "keyring.json").unlink()

    assert os_keyring(tmp_path).names() == []
    assert os_keyring(tmp_path).read("A") == "hunter2"
    assert os_keyring(tmp_path).remove("A")


def test_a_moved_state_directory_finds_its_entries(tmp_path: Path) -> None:
    having(MemoryKeyring())
    os_keyring(tmp_path / "old").write("A", "hunter2")
    (tmp_path / "old").rename(tmp_path / "new")

    assert os_keyring(tmp_path / "new").read("A") == "hunter2"


def test_a_name_whose_entry_somebody_deleted_is_missing_and_can_be_removed(tmp_path: Path) -> None:
    ring = MemoryKeyring()
    having(ring)
    store = os_keyring(tmp_path)
    store.write("A", "hunter2")
    ring.entries.clear()

    assert (store.read("A"), store.names()) == (None, ["A"])
    assert store.remove("A")
    assert store.names() == []


# Which of them


def opened(choice: str, state_dir: Path) -> Secrets:
    assert choice in ("auto", "keyring", "file")
    return open_store(choice, state_dir, patience_s=0.2)


def test_the_keyring_is_taken_where_it_can_be_used_else_the_file(tmp_path: Path) -> None:
    assert opened("auto", tmp_path).kind == "file"
    having(LockedKeyring())
    assert opened("auto", tmp_path).kind == "file"
    having(HangingKeyring())
    assert opened("auto", tmp_path).kind == "file"
    having(MemoryKeyring())
    assert opened("auto", tmp_path).kind == "keyring"


def test_what_was_chosen_first_stays_chosen_when_a_keyring_turns_up(tmp_path: Path) -> None:
    opened("auto", tmp_path).write("A", "hunter2")
    having(MemoryKeyring())

    assert opened("auto", tmp_path).kind == "file"
    assert opened("auto", tmp_path).read("A") == "hunter2"


@pytest.mark.parametrize("gone", [FailKeyring, LockedKeyring, HangingKeyring])
def test_a_keyring_that_holds_the_secrets_and_is_gone_is_an_error_and_no_empty_store(
    tmp_path: Path, gone: type[KeyringBackend]
) -> None:
    having(MemoryKeyring())
    opened("auto", tmp_path).write("A", "hunter2")
    having(gone())

    with pytest.raises(SecretsUnusable, match="kept in the keyring of this system, and it cannot be reached"):
        opened("auto", tmp_path)


def test_what_the_configuration_says_wins(tmp_path: Path) -> None:
    having(MemoryKeyring())
    opened("auto", tmp_path).write("A", "in the keyring")

    opened("file", tmp_path).write("A", "in the file")

    assert opened("keyring", tmp_path).read("A") == "in the keyring"
    assert opened("file", tmp_path).read("A") == "in the file"
    assert opened("auto", tmp_path).read("A") == "in the file", "it was written last"


def test_a_damaged_record_of_the_choice_is_an_error_and_not_a_guess(tmp_path: Path) -> None:
    opened("auto", tmp_path).write("A", "hunter2")
    (tmp_path / "secrets" / "store").write_text("keyfile")

    with pytest.raises(SecretsUnusable, match="says neither"):
        opened("auto", tmp_path)


def test_the_store_is_opened_with_the_first_secret_and_a_hanging_keyring_waited_for_once(tmp_path: Path) -> None:
    ring = HangingKeyring()
    having(ring)
    reader = OnDemand("keyring", tmp_path, patience_s=0.05)
    assert ring.asked == 0

    for name in ("A", "B", "C"):
        with pytest.raises(SecretsUnusable, match="did not answer"):
            reader.read(name)
    assert ring.asked == 1


def test_a_value_is_read_anew_each_time(tmp_path: Path) -> None:
    reader = OnDemand("file", tmp_path, patience_s=1)
    assert reader.read("A") is None

    SealedFile(tmp_path).write("A", "one")
    assert reader.read("A") == "one"
    SealedFile(tmp_path).write("A", "two")
    assert reader.read("A") == "two"
