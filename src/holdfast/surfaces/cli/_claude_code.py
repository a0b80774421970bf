"""claude code: the features that Claude Code switches off at an address that is not Anthropic's.

Read from Claude Code 2.1.197: with `ANTHROPIC_BASE_URL` at any host but api.anthropic.com it sends
the schemas of all tools instead of searching for them, sends questions for a small model to the
main one, and assumes a window of 200,000 tokens for models with a million. The proxy forwards to
the same provider, so wrap restores these features with the documented variables.
`_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL` would restore more, but it is private, and it makes the
client sign the bytes of each body, which the proxy may change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

_ADDRESS = "ANTHROPIC_BASE_URL"
_VENDOR = "api.anthropic.com"
_OTHER_SERVICES = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
_SMALL_MODELS = ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_SMALL_FAST_MODEL")
"""The newer variable, and the one before it, which still wins."""
_SMALL_MODEL = "claude-haiku-4-5"
_ANTHROPIC_KEY = "sk-ant-api"
"""The prefix of keys with which the client finds its small model at any address."""
_MILLION = ("claude-opus-4-7", "claude-opus-4-8", "claude-sonnet-5", "claude-fable-5")
"""Models whose window is a million tokens without a beta header; `[1m]` tells the client."""


def restored_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that restore the client's behaviour without the proxy.

    A variable that the environment or a settings file sets already is left out. So are all where
    the client would not have asked Anthropic itself: there it has the same features off.
    """
    chosen = {**environment}
    for variables in _settings_variables(environment):
        chosen |= variables
    if not _asks_anthropic(chosen):
        return {}
    restored: dict[str, str] = {}
    if "ENABLE_TOOL_SEARCH" not in chosen:
        restored["ENABLE_TOOL_SEARCH"] = "true"
    key = chosen.get("ANTHROPIC_API_KEY", "")
    if not key.startswith(_ANTHROPIC_KEY) and not any(name in chosen for name in _SMALL_MODELS):
        restored[_SMALL_MODELS[0]] = _SMALL_MODEL
    # Not under a login: subscriptions may bill the header that comes with `[1m]` apart.
    if key and environment.get("ANTHROPIC_MODEL") in _MILLION:
        restored["ANTHROPIC_MODEL"] = f"{environment['ANTHROPIC_MODEL']}[1m]"
    return restored


def arguments_at(url: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the arguments that make the client obey our address.

    The client puts the variables of its settings files above those of its environment, and the
    settings of its command line above both.
    """
    if not address_in_settings(environment):
        return ()
    return ("--settings", json.dumps({"env": {_ADDRESS: url}}))


def address_in_settings(environment: Mapping[str, str]) -> str:
    """Return the address in the user's own settings, if any.

    Not the address in a project's settings: the client follows that only once the user trusts the
    project, and keys would be sent there.
    """
    return next(_settings_variables(environment)).get(_ADDRESS, "")


def _asks_anthropic(chosen: Mapping[str, str]) -> bool:
    if any(chosen.get(name) for name in _OTHER_SERVICES):
        return False
    address = chosen.get(_ADDRESS)
    return not address or urlsplit(address).netloc == _VENDOR


def _settings_variables(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the variables of the user's settings, then of the project's, the weakest first."""
    home = environment.get("HOME") or environment.get("USERPROFILE") or ""
    user = environment.get("CLAUDE_CONFIG_DIR") or Path(home, ".claude")
    yield _variables(Path(user, "settings.json"))
    yield _variables(Path(".claude", "settings.json"))
    yield _variables(Path(".claude", "settings.local.json"))


def _variables(path: Path) -> dict[str, str]:
    try:
        settings = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    variables = settings.get("env") if isinstance(settings, dict) else None
    if not isinstance(variables, dict):
        return {}
    return {name: str(value) for name, value in variables.items()}
