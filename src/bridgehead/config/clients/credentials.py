"""Finds what is a credential in a backend's table and puts `${secret:NAME}` in its place.

By the name it goes under (`GITHUB_TOKEN`, `--api-key`, `Authorization`) or by its own looks (`ghp_…`, a JWT, long and
random). Too much is better than too little: a value in the store works like one in the file, while one that was missed lies
open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MASK = "***"
_NAME = re.compile(
    r"token|secret|passw(?:or)?d|passphrase|\bpass\b|_pass\b|api[-_ ]?key|apikey|access[-_ ]?key|private[-_ ]?key|"
    r"credential|authorization|bearer|cookie|session[-_ ]?(?:id|key)|conn(?:ection)?[-_ ]?str|\bdsn\b|_dsn\b|"
    r"\bpat\b|_pat\b|[-_]key\b|^key$|^auth$|x-auth|signature|webhook[-_]?url|database[-_]?url",
    re.IGNORECASE,
)
_PLAIN_VALUE = re.compile(
    r"true|false|yes|no|on|off|none|null|(?:~|\.\.?)?[\\/](?:[A-Za-z._-]{0,20}(?:[\\/].*)?)|[A-Za-z]:[\\/].*",
    re.IGNORECASE,
)
_PASSWORD_NAME = re.compile(r"passw|passphrase|secret|pass$", re.IGNORECASE)
_COUNT_DIGITS = 7
"""Numbers up to this long count something, as in `MAX_TOKENS`."""
_WHITE = re.compile(r"\s")
_PLACEHOLDER = re.compile(r"(?<!\$)\$\{")
_PLAIN_URL = re.compile(r"[a-z][a-z0-9+.-]*://(?P<user>[^/?#@\s]*@)?[^?#\s]*$", re.IGNORECASE)
_KNOWN = re.compile(
    r"(?<![A-Za-z0-9_-])(?:(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|"
    r"gl(?:pat|dt|rt)-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|xapp-[\w-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|"
    r"ya29\.[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|"
    r"tvly-[\w-]{12,}|ntn_\w{20,}|secret_\w{20,}|lin_(?:api|oauth)_\w{20,}|SG\.[\w-]{16,}\.[\w-]{16,}|dop_v1_\w{32,}|"
    r"figd_[\w-]{20,}|pat[A-Za-z0-9]{14}\.\w{32,}|whsec_\w{16,}|ctx7sk-[\w-]{16,}|BSA[\w-]{20,}|AC[0-9a-f]{32}|"
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*)",
    re.DOTALL,
)
_WORD = re.compile(r"[A-Za-z0-9_+=-]+")
_HEX = re.compile(r"[0-9a-f]{32,}", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_RANDOM_LENGTH = 28
_NAME_LENGTH = 60
_SCHEME = re.compile(r"(?P<scheme>(?:Bearer|Basic|Token|ApiKey|Bot|Digest)[ ]+)(?P<rest>.+)", re.IGNORECASE | re.DOTALL)
_ASSIGNED = re.compile(r"(?P<key>-{0,2}[A-Za-z][\w.-]*)(?P<sign>=|:[ ]*)(?P<value>.+)", re.DOTALL)
_OPTION = re.compile(r"-{1,2}(?P<key>[A-Za-z][\w-]*)")
_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?:(?P<user>[^/?#@\s]*)@)?(?P<host>[^/?#\s]*)(?P<path>[^?#\s]*)"
    r"(?:\?(?P<query>[^#\s]*))?(?P<fragment>#\S*)?",
    re.IGNORECASE,
)
_IN_TEXT = re.compile(
    r"(?P<before>Bearer +|[?&][\w.-]+=|://[^/\s:@\"]*:|\"?[\w.-]+\"? *[:=] *\"?)(?P<value>[^\"\s,&@]{8,})"
)


@dataclass(slots=True)
class Lifting:
    """What is taken out of one backend.

    Attributes:
        backend: Its name, which the names of its secrets begin with.
        known: The value that a name has already, in the store or for another backend; None where it has none.
        secrets: The values by name, as they are found.
    """

    backend: str
    known: Callable[[str], str | None]
    secrets: dict[str, str] = field(default_factory=dict[str, str])

    def table(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """The backend's table with placeholders where credentials were."""
        lifted = dict(table)
        for part in ("env", "headers"):
            if part in table:
                lifted[part] = {key: self._named(key, value) for key, value in table[part].items()}
        if "args" in table:
            lifted["args"] = self._args(table["args"])
        if "url" in table:
            lifted["url"] = self._url(table["url"], "URL")
        return lifted

    def _named(self, key: str, value: str) -> str:
        """A value under a name, in `env` or `headers`, or behind an option."""
        scheme = _SCHEME.fullmatch(value)
        prefix, rest = (scheme["scheme"], scheme["rest"]) if scheme else ("", value)
        sent = bool(prefix) and _WHITE.search(rest) is None and _PLACEHOLDER.search(rest) is None
        if sent or _is_meant(key, rest) or _is_hook(key, rest):
            return prefix + self._put(key, rest)
        if _URL.fullmatch(value):
            return self._url(value, key)
        return self._put(key, value) if _holds_credential(value) else value

    def _args(self, args: list[str]) -> list[str]:
        lifted: list[str] = []
        for index, arg in enumerate(args):
            option = _OPTION.fullmatch(args[index - 1]) if index else None
            named = option is not None and _is_name(option["key"]) and not arg.startswith("-")
            if option is not None and named and _is_meant(option["key"], arg):
                lifted.append(self._put(option["key"], arg))
            else:
                lifted.append(self._arg(arg))
        return lifted

    def _arg(self, arg: str) -> str:
        """One argument: a URL, `key=value`, `Name: value`, or these behind an option, or a credential by itself."""
        if _URL.fullmatch(arg):
            return self._url(arg, "URL")
        assigned = _ASSIGNED.fullmatch(arg)
        if assigned is None:
            return self._put("ARG", arg) if is_credential(arg) or _holds_credential(arg) else arg
        key, value = assigned["key"].lstrip("-"), assigned["value"]
        inner = self._arg(value) if _ASSIGNED.fullmatch(value) and not _is_name(key) else self._named(key, value)
        return assigned["key"] + assigned["sign"] + inner

    def _url(self, url: str, key: str) -> str:
        """The URL with its password, the values of its query and parts of its path looked at one by one."""
        found = _URL.fullmatch(url)
        if found is None:
            return url
        user = found["user"]
        written = found["scheme"]
        if user is not None:
            name, colon, password = user.partition(":")
            lifted = [self._put("USER", name) if is_credential(name) else name]
            if colon:
                is_given = bool(password) and _PLACEHOLDER.search(password) is None
                lifted.append(self._put("PASSWORD", password) if is_given else password)
            written += ":".join(lifted) + "@"
        written += found["host"] + "/".join(
            self._put(f"{key}_PATH", part) if is_credential(part) else part for part in found["path"].split("/")
        )
        if found["query"] is not None:
            written += "?" + "&".join(self._query(pair) for pair in found["query"].split("&"))
        return written + (found["fragment"] or "")

    def _query(self, pair: str) -> str:
        key, sign, value = pair.partition("=")
        if _is_meant(key, value):
            return key + sign + self._put(key, value)
        return pair

    def _put(self, key: str, value: str) -> str:
        """Keep the value under a name of its own; the placeholder for it."""
        value = value.replace("$${", "${")  # what is in the store is not looked at for placeholders
        name = secret_name(self.backend, key)
        number = 1
        while self.secrets.get(name, self.known(name)) not in {None, value}:
            number += 1
            name = f"{secret_name(self.backend, key)}_{number}"
        self.secrets[name] = value
        return f"${{secret:{name}}}"


def secret_name(backend: str, key: str) -> str:
    """What a secret of that backend is called: `GITHUB_TOKEN`, `DOCS_AUTHORIZATION`."""
    owner, own = (re.sub(r"[^A-Z0-9]+", "_", part.upper()).strip("_") for part in (backend, key))
    name = own if own.startswith(owner) and own else "_".join(part for part in (owner, own) if part)
    return (f"SECRET_{name}" if not name or name[0].isdigit() else name)[:_NAME_LENGTH].rstrip("_")


def is_credential(value: str) -> bool:
    """Whether the value looks like a credential, whatever its name."""
    if _KNOWN.fullmatch(value) or _UUID.fullmatch(value) or _HEX.fullmatch(value):
        return True
    if len(value) < _RANDOM_LENGTH or not _WORD.fullmatch(value):
        return False
    return all(any(test(character) for character in value) for test in (str.isdigit, str.isupper, str.islower))


def masked(text: str) -> str:
    """The text for showing, with `***` where something looks like a credential."""

    def replacement(found: re.Match[str]) -> str:
        before, value = found["before"], found["value"]
        key = re.sub(r'[":= ]', "", before).lstrip("?&")
        sure = before.startswith(("Bearer", "://")) and _PLACEHOLDER.search(value) is None
        return before + MASK if sure or _is_meant(key, value) else found[0]

    return _KNOWN.sub(MASK, _IN_TEXT.sub(replacement, text))


def _holds_credential(value: str) -> bool:
    """Whether a longer text, such as JSON, has a credential in it; then all of it is kept."""
    return _KNOWN.search(value) is not None and _PLACEHOLDER.search(value) is None


def _is_name(key: str) -> bool:
    return _NAME.search(key) is not None


def _is_hook(key: str, value: str) -> bool:
    """Whether it is a URL that lets in whoever knows it."""
    return "webhook" in key.lower() and _URL.fullmatch(value) is not None and _PLACEHOLDER.search(value) is None


def _is_meant(key: str, value: str) -> bool:
    """Whether this is a credential, by its looks or by its name.

    What stands under the name of one may still be a switch, a number, a path, a bare URL or a placeholder; but a password may
    be a number.
    """
    if not value or _PLACEHOLDER.search(value):
        return False
    if is_credential(value):
        return True
    url = _PLAIN_URL.fullmatch(value)
    if not _is_name(key) or _PLAIN_VALUE.fullmatch(value) or (url is not None and url["user"] is None):
        return False
    return not value.isdigit() or len(value) > _COUNT_DIGITS or _PASSWORD_NAME.search(key) is not None
