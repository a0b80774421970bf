"""clients: the variables and arguments that point a program at the proxy's address.

No function changes the user's files. The address that a program used before becomes the upstream:
see `upstream_of`.
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
"""Variables in which SDKs and programs look for an address; LiteLLM and aider use the second."""


class ClientTarget(NamedTuple):
    """The variables and arguments that make a program use an address."""

    variables: dict[str, str]
    arguments: tuple[str, ...] = ()
    """Arguments that come before its other arguments."""


def _by_variables(url: str, environment: Mapping[str, str]) -> ClientTarget:
    """Return the variables of all providers, which every program gets."""
    del environment
    openai = dict.fromkeys(VARIABLES["openai"], f"{url}/v1")
    names = (*VARIABLES["anthropic"], *VARIABLES["gemini"])
    return ClientTarget(openai | dict.fromkeys(names, url))


def _codex(url: str, environment: Mapping[str, str]) -> ClientTarget:
    """Return a provider for this run, because Codex has no variable for its built-in one."""
    # With a key in the environment it sends that; else what its own login has stored.
    key = "OPENAI_API_KEY" in environment
    auth = 'env_key = "OPENAI_API_KEY"' if key else "requires_openai_auth = true"
    provider = f'{{ name = "OpenAI", base_url = "{url}/v1", wire_api = "responses", {auth} }}'
    chosen = ("model_provider=holdfast", f"model_providers.holdfast={provider}")
    arguments = tuple(part for setting in chosen for part in ("-c", setting))
    return ClientTarget(_by_variables(url, environment).variables, arguments)


def _opencode(url: str, environment: Mapping[str, str]) -> ClientTarget:
    """Return a configuration with the address, which opencode reads from a variable."""
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
    return ClientTarget(variables | {"OPENCODE_CONFIG_CONTENT": json.dumps(merged)})


def _claude(url: str, environment: Mapping[str, str]) -> ClientTarget:
    """Return the address, and variables that keep features which it disables at other hosts."""
    variables = _by_variables(url, environment).variables
    arguments = _claude_code.arguments_at(url, environment)
    return ClientTarget(variables | _claude_code.restored_variables(environment), arguments)


_PROGRAMS: dict[str, Callable[[str, Mapping[str, str]], ClientTarget]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
}
"""Programs that need more than the variables of all providers."""

INSTALLS = {
    "claude": "npm install -g @anthropic-ai/claude-code",
    "codex": "npm install -g @openai/codex",
    "gemini": "npm install -g @google/gemini-cli",
    "opencode": "npm install -g opencode-ai",
    "aider": "pip install aider-chat",
}
"""Commands that install well-known agents."""


def pointed(program: str, url: str, environment: Mapping[str, str]) -> ClientTarget:
    """Return the variables and arguments for a program, by the name of its file."""
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
