"""Each client's placeholders in our words, or named with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridgehead.config.clients.variables import Asked, Translator, Untranslatable

HOME, PROJECT = Path("/home/ann"), Path("/home/ann/shop")


@pytest.mark.parametrize(
    ("client", "text", "expected"),
    [
        ("claude-desktop", "${HOME} $X", "$${HOME} $X"),
        ("codex", "${HOME} $X", "$${HOME} $X"),
        ("claude-code", "a ${X} ${Y:-z} $Z", "a ${X} ${Y:-z} $Z"),
        ("claude-code", "${CLAUDE_PROJECT_DIR}/x", "/home/ann/shop/x"),
        ("cursor", "${env:X} ${userHome}${/}n", "${X} /home/ann/n"),
        ("cursor", "${workspaceFolder}:${workspaceFolderBasename}", "/home/ann/shop:shop"),
        ("vscode", "${env:X}${pathSeparator}", "${X}/"),
        ("windsurf", "Bearer ${env:X}", "Bearer ${X}"),
        ("gemini", "$X-${Y}-${Z:-w} 5$ $5", "${X}-${Y}-${Z:-w} 5$ $5"),
    ],
)
def test_what_has_an_equal_is_translated(client: str, text: str, expected: str) -> None:
    assert Translator(client, HOME, PROJECT).text(text) == expected


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("claude-code", "${not a name}"),
        ("claude-code", "${CLAUDE_PROJECT_DIR}"),
        ("cursor", "${workspaceFolder}/x"),
        ("cursor", "${HOME}"),
        ("vscode", "${command:pick}"),
        ("vscode", "${input:unknown}"),
        ("windsurf", "${file:/x}"),
        ("windsurf", "${userHome}"),
        ("gemini", "${not-a-name}"),
    ],
)
def test_what_has_none_is_named_with_what_to_do(client: str, text: str) -> None:
    with pytest.raises(Untranslatable) as untranslatable:
        Translator(client, HOME, None).text(text)

    assert text.removesuffix("/x") in str(untranslatable.value)
    assert "bridgehead backend add" in str(untranslatable.value)


def test_what_vscode_asks_for_becomes_a_secret_to_be_set() -> None:
    inputs = {"my key": {"description": "The key", "password": True}, "region": {"default": "eu"}, "1": {}}
    translator = Translator("vscode", HOME, None, inputs=inputs)

    assert translator.text("${input:my key}/${input:region}/${input:1}/${input:my key}") == (
        "${secret:MY_KEY}/eu/${secret:INPUT_1}/${secret:MY_KEY}"
    )
    assert translator.asked == [Asked("MY_KEY", "The key"), Asked("INPUT_1", "1")]
