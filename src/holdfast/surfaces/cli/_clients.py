"""clients: how programs that call models are pointed at another address, as data.

Each function takes the proxy's address and returns variables and arguments; none changes the user's
own files. The address that a program used before becomes the upstream: see `upstream_of`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from . import _claude_code

Family = Literal["openai", "anthropic", "gemini"]

VARIABLES: dict[Family, tuple[str, ...]] = {
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "anthropic": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
    "gemini": ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"),
}
"""Where SDKs and programs look for an address; the second ones are LiteLLM's, and so aider's."""


class Pointed(NamedTuple):
    """What makes a program talk to an address."""

    variables: dict[str, str]
    arguments: tuple[str, ...] = ()
    """Arguments to put before its other arguments."""


def _by_variables(url: str, environment: Mapping[str, str]) -> Pointed:
    """What every program gets: the variables of all families."""
    del environment
    openai = dict.fromkeys(VARIABLES["openai"], f"{url}/v1")
    others = (*VARIABLES["anthropic"], *VARIABLES["gemini"])
    return Pointed(openai | dict.fromkeys(others, url))


def _codex(url: str, environment: Mapping[str, str]) -> Pointed:
    """Codex reads no address of its built-in provider: it gets a provider for this run."""
    # With a key in the environment it sends that; else what its own login has stored.
    key = "OPENAI_API_KEY" in environment
    auth = 'env_key = "OPENAI_API_KEY"' if key else "requires_openai_auth = true"
    provider = f'{{ name = "OpenAI", base_url = "{url}/v1", wire_api = "responses", {auth} }}'
    chosen = ("model_provider=holdfast", f"model_providers.holdfast={provider}")
    arguments = tuple(part for setting in chosen for part in ("-c", setting))
    return Pointed(_by_variables(url, environment).variables, arguments)


def _opencode(url: str, environment: Mapping[str, str]) -> Pointed:
    """Opencode reads addresses from a configuration, which may be given as a variable."""
    try:
        config: Any = json.loads(environment.get("OPENCODE_CONFIG_CONTENT") or "{}")
    except ValueError:
        config = {}
    bases = {"openai": f"{url}/v1", "anthropic": f"{url}/v1", "google": f"{url}/v1beta"}
    providers = dict(config.get("provider") or {}) if isinstance(config, dict) else {}
    for name, base in bases.items():
        provider = dict(providers.get(name) or {})
        provider["options"] = {**(provider.get("options") or {}), "baseURL": base}
        providers[name] = provider
    merged = {**config, "provider": providers} if isinstance(config, dict) else {}
    variables = _by_variables(url, environment).variables
    return Pointed(variables | {"OPENCODE_CONFIG_CONTENT": json.dumps(merged)})


def _claude(url: str, environment: Mapping[str, str]) -> Pointed:
    """Return our address, and variables that keep the features it disables at other hosts."""
    variables = _by_variables(url, environment).variables
    arguments = _claude_code.arguments_at(url, environment)
    return Pointed(variables | _claude_code.restored_variables(environment), arguments)


_PROGRAMS: dict[str, Callable[[str, Mapping[str, str]], Pointed]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
}
"""Those that need more than variables."""

INSTALLS = {
    "claude": "npm install -g @anthropic-ai/claude-code",
    "codex": "npm install -g @openai/codex",
    "gemini": "npm install -g @google/gemini-cli",
    "opencode": "npm install -g opencode-ai",
    "aider": "pip install aider-chat",
}
"""How programs are installed that people ask for by name."""


def pointed(program: str, url: str, environment: Mapping[str, str]) -> Pointed:
    """What makes a program, known by the name of its file, talk to an address."""
    return _PROGRAMS.get(program, _by_variables)(url, environment)


def program_environment(program: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with the addresses that the program's own settings put above it."""
    if program != "claude":
        return environment
    address = _claude_code.address_in_settings(environment)
    return {**environment, "ANTHROPIC_BASE_URL": address} if address else environment


def upstream_of(family: Family, environment: Mapping[str, str]) -> str:
    """Return where a program would have sent requests of a family; empty for the vendor's own."""
    for name in VARIABLES[family]:
        if value := environment.get(name):
            return value.rstrip("/").removesuffix("/v1") if family == "openai" else value
    return ""
