"""What a Supermemory backend is told, checked before anything is asked of the network."""

from __future__ import annotations

import os

from mycelium_sdk.errors import ConfigError, InputError

KEY_VARIABLE = "SUPERMEMORY_API_KEY"
DEFAULT_URL = "https://api.supermemory.ai"
URL_VARIABLE = "SUPERMEMORY_BASE_URL"


def require(value: object, options: tuple[object, ...], name: str) -> None:
    if value not in options:
        allowed = ", ".join(str(option) for option in options if option is not None)
        raise InputError(f"{name} is none of {allowed}", hint=f"{name} is one of {allowed}")


def checked_key(given: str | None) -> str:
    key = (os.environ.get(KEY_VARIABLE, "") if given is None else given).strip()
    if not key:
        raise ConfigError(
            "there is no key for the memory service",
            hint=f"set {KEY_VARIABLE}, or give api_key; the service's console makes keys",
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(
            "the key for the memory service holds characters that no key has", hint=f"check {KEY_VARIABLE}"
        )
    return key


def checked_url(url: str | None) -> str | None:
    if url is None:
        url = os.environ.get(URL_VARIABLE) or None
    if url is None:
        return None
    if not isinstance(url, str) or not url.lower().startswith(("http://", "https://")):
        raise ConfigError(
            "base_url is no http or https address", hint="write it like https://memory.example.org"
        )
    if any(sign in url for sign in "@?# "):
        raise ConfigError(
            "base_url is more than a server and a path", hint="the key goes into api_key, not here"
        )
    return url.rstrip("/")
