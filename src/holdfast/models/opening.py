"""A model by its id: its transport and configuration.

Nothing is called here, and nothing slow imported: an invalid id fails at once, other errors come
with the first call.

    extractive                     our own: it quotes
    [cli]claude:haiku              the program of that name, which must be installed
    openai:…, ollama:…, mine:…     the address in [upstreams.openai], or OpenAI's own with its key
    anything else                  Pydantic AI, if it is installed
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from holdfast.errors import ModelRefusedError, SettingsError
from holdfast.models.command import PROGRAMS, CommandModel, InstalledProgram, plain_reply
from holdfast.models.digest import ExtractiveModel
from holdfast.models.protocol import CompletionModel
from holdfast.models.pydantic_models import PydanticModel
from holdfast.settings import Settings
from holdfast.tokens.limits import ModelContextRegistry, get_effective_context
from holdfast.tokens.provider_ids import ProviderId

EXTRACTIVE = "extractive"
_OPENAI = "https://api.openai.com"


def open_model(provider_id: str, settings: Settings) -> CompletionModel:
    """The model that an id means.

    Raises:
        SettingsError: the id can mean no model.
        ModelRefusedError: `forbid_model_calls` is set, and this one is not of this machine.
    """
    if provider_id.strip().lower() == EXTRACTIVE:
        return ExtractiveModel()
    id_ = ProviderId.parse(provider_id)
    window = get_effective_context(provider_id, ModelContextRegistry(settings))
    name, timeout = id_.format(), settings.summarization_timeout
    program = _program(id_, settings)
    if program is not None:
        _refuse_if_forbidden(settings, name)
        command = [part.replace("{model}", id_.model) for part in program.arguments]
        return CommandModel(name, command, program.reply, window=window, timeout=timeout)
    url = _address(id_, settings)
    if url:
        if not is_here(url):
            _refuse_if_forbidden(settings, name)
        from holdfast.models.http import HttpModel  # noqa: PLC0415 - its client takes 200 ms

        key = settings.upstream("openai").key
        return HttpModel(name, id_.model, url=url, key=key, window=window, timeout=timeout)
    _refuse_if_forbidden(settings, name)
    return PydanticModel(name, id_.id, window=window, timeout=timeout)


def _program(id_: ProviderId, settings: Settings) -> InstalledProgram | None:
    """The program that an id means; None if it is reached otherwise."""
    if not id_.is_program:
        return None
    own = settings.summarization_commands.get(id_.provider)
    if own:
        return InstalledProgram(tuple(own), plain_reply)
    if id_.provider in PROGRAMS:
        return PROGRAMS[id_.provider]
    if id_.transport:
        raise SettingsError(
            "there is no program of this name",
            where=id_.format(),
            fix=f"Use one of {', '.join(PROGRAMS)}, or say in summarization_commands how it runs.",
        )
    return None


def _address(id_: ProviderId, settings: Settings) -> str:
    """Where a model like OpenAI's is; empty if it is another's, or the settings name no address."""
    if id_.provider not in ("openai", "unknown") and not id_.is_local and not id_.is_program:
        return ""
    upstream = settings.upstream("openai")
    url = upstream.url or (_OPENAI if upstream.key else "")
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username):
        raise SettingsError(
            "the upstream is no HTTP address",
            where="upstreams.openai",
            fix=f"Give one such as {_OPENAI}, without a user name.",
        )
    return url


def _refuse_if_forbidden(settings: Settings, name: str) -> None:
    if settings.forbid_model_calls:
        raise ModelRefusedError(
            "models of others may not be asked", where=name, fix="Switch forbid_model_calls off."
        )


def is_here(url: str) -> bool:
    """Whether an address is this machine's own."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
