"""What is installed is what was locked, from whatever mirror the machine uses."""

import json
import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.source import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = PROJECT["dependency-groups"]
RUN = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"], *GROUPS["build"], *GROUPS["servers"]]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)((?:.*\\\n)*.*)", re.MULTILINE)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def pins(lock: str) -> dict[str, tuple[str, str]]:
    """Name and version of every package in the lock, with the rest of its entry."""
    return {canonicalize_name(name): (version, rest) for name, version, rest in PIN.findall(read(lock))}


@pytest.mark.parametrize(
    ("lock", "wanted"), [("requirements.lock", [*RUN, *GROUPS["dev"]]), ("requirements-run.lock", RUN)]
)
def test_every_direct_dependency_is_locked_as_it_is_wanted(lock: str, wanted: list[str]) -> None:
    locked = pins(lock)

    for requirement in map(Requirement, wanted):
        version, _ = locked[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version, prereleases=True), f"{requirement}: run ./scripts/lock"


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-run.lock"])
def test_every_package_has_hashes_and_no_address(lock: str) -> None:
    assert "://" not in read(lock)
    assert [name for name, (_, rest) in pins(lock).items() if "--hash=sha256:" not in rest] == []


def test_the_smaller_lock_is_part_of_the_larger_one() -> None:
    everything = pins("requirements.lock")

    assert {name: version for name, (version, _) in pins("requirements-run.lock").items()} == {
        name: everything[name][0] for name in pins("requirements-run.lock")
    }


def test_node_packages_are_locked_exactly_and_without_addresses() -> None:
    wanted = json.loads(read("node/package.json"))
    lock = json.loads(read("node/package-lock.json"))
    packages = {path: entry for path, entry in lock["packages"].items() if path}

    for name, version in {**wanted["dependencies"], **wanted["devDependencies"]}.items():
        assert packages[f"node_modules/{name}"]["version"] == version, f"{name}: run ./scripts/lock"
    assert [path for path, entry in packages.items() if "resolved" in entry or "integrity" not in entry] == []
