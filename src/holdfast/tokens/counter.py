"""Count the input tokens of a request before it is sent.

The renderer of the model's family gives the tokens of each part, and the count states its accuracy.
Counts are cached per message, so a request with one new message costs one message.
"""

from __future__ import annotations

import math
import re
import warnings
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from holdfast.errors import HoldfastWarning, SettingsError, TokenCountingError
from holdfast.faults import logged_faults
from holdfast.tokens import vocabulary
from holdfast.tokens.bounds import upper_bound
from holdfast.tokens.families import UNKNOWN, Accuracy, Constants, family_constants
from holdfast.tokens.provider_ids import ProviderId
from holdfast.tokens.render import renderer
from holdfast.tokens.render.claude import loaded_tools, text_tokens
from holdfast.tokens.render.parts import Envelope
from holdfast.tokens.render.request import request_frame
from holdfast.tokens.request_reader import is_request, read_request
from holdfast.tokens.tally import tally_messages
from holdfast.tokens.vocabulary import CountText
from holdfast.wire import Conversation, Limits, Message
from holdfast.wire.deferred_tools import deferred_names, loaded_names


class UnknownModelWarning(HoldfastWarning):
    """The model is unknown, so its tokens are estimated."""


class Parts(msgspec.Struct, frozen=True):
    """The tokens of a request by part."""

    system: int
    tools: int
    messages: int
    formatting: int
    """Tokens of headers, hidden prompts and response schemas."""


class TokenCount(msgspec.Struct, frozen=True, kw_only=True):
    """A token count with its upper bound and accuracy."""

    tokens: int
    """Best estimate."""
    upper: int
    """Upper bound: the provider reports no more in at least 99 of 100 cases."""
    accuracy: Accuracy
    parts: Parts
    model: str
    family: str
    """Name of the model family whose constants were used."""
    note: str = ""
    """Why the count is less accurate than usual; empty if it is not."""
    plain: int
    """Tokens before calibration."""
    message_tokens: tuple[float, ...] = ()

    @property
    def per_message(self) -> tuple[int, ...]:
        """Return the tokens of each message."""
        return tuple(round(tokens) for tokens in self.message_tokens)

    def __repr__(self) -> str:
        return f"<TokenCount {self.tokens}, at most {self.upper}, {self.accuracy}>"


class TokenCounter(Protocol):
    """Custom counter for a provider's requests; see `register_counter`."""

    @property
    def accuracy(self) -> Accuracy:
        """Accuracy of the counts."""

    def count(self, conversation: Conversation, model: str) -> int:
        """Return the input tokens of a request."""


class Correction(Protocol):
    """Adjusts a count after the fact; `Calibration` implements it."""

    def correct(self, count: TokenCount) -> TokenCount:
        """Return the count corrected for its model."""


NOT_RENDERED = "could not be rendered"
"""Start of the note on a count estimated by length after an internal error."""
_DEFAULT_LIMITS = Limits()
_registered: dict[str, TokenCounter] = {}
_warned: set[str] = set()
# Linear: one character class and a bound, tried on at most _LONGEST_NAME + 1 characters.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,99}")
_MAX_NAME = 100
_MAX_LOGGED_NAME = 40
"""Maximum characters of a model's name in a warning; most names are shorter."""
# Factor from a registered counter's result to its upper bound, by the stated accuracy.
_SLACK: dict[Accuracy, float] = {"exact": 1.0, "calibrated": 1.1, "heuristic": 1.5}


def register_counter(prefix: str, counter: TokenCounter | None) -> None:
    """Count requests for models whose id starts with `prefix` with your counter; None removes it.

    Prefixes are compared with the id as given and as `provider:model`, so `openai`, `openai:gpt-4o`
    and `gpt-4o` all match `gpt-4o-mini`; the longest prefix wins. If the counter raises or returns
    no valid number, the built-in count is used and its note says so.
    """
    if counter is None:
        _registered.pop(prefix, None)
    else:
        _registered[prefix] = counter


def count(  # noqa: PLR0913 - named arguments, of which most calls need one
    body_or_text: object,
    *,
    model: str | None = None,
    dialect: str | None = None,
    platform: str = "",
    calibration: Correction | None = None,
    memory: vocabulary.CountCache = vocabulary.shared,
    limits: Limits = _DEFAULT_LIMITS,
) -> TokenCount:
    """Count the input tokens of a request body (bytes, text, dictionary, Conversation) or a text.

    `model` defaults to the model in the body. `platform` is the destination (`openrouter`, `groq`,
    `ollama`, `vertex`, …) if it is not the vendor's own API.
    """
    _refuse_unless_text(model or "", "the model")
    if isinstance(body_or_text, Conversation):
        conversation = body_or_text
    elif isinstance(body_or_text, str) and dialect is None and not is_request(body_or_text):
        return _count_text(body_or_text, model or "", memory.count)
    else:
        conversation = read_request(body_or_text, dialect, limits)
    model = model or conversation.model or ""
    counted = _count_conversation(conversation, model, platform, memory.count)
    return calibration.correct(counted) if calibration is not None else counted


def estimate_tokens(text: str, provider_id: str, provider_manager: Any = None) -> int:
    """Return the tokens of a text, using the provider's own counter if it works."""
    _refuse_unless_text(text, "what is counted")
    _refuse_unless_text(provider_id, "the provider id")
    native = getattr(provider_manager, "count_tokens", None)
    if native is not None:
        try:
            return _valid_count(native(text, provider_id))
        # Any failure of the caller's counter falls back to the built-in count.
        except Exception as error:  # noqa: BLE001
            _warn_once(
                f"the counter of {_loggable_name(provider_id)} failed ({type(error).__name__})"
            )
    return _count_text(text, provider_id, vocabulary.shared.count).tokens


def _refuse_unless_text(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise TokenCountingError(
            f"{what} must be text, not {type(value).__name__}", fix="Pass a string."
        )


# --- count a text or a conversation --------------------------------------------------------------


def _count_text(text: str, model: str, counter: CountText) -> TokenCount:
    numbers = family_constants(model, "openai-chat")
    _warn_if_unknown(numbers, model)
    if numbers.root == "claude":
        tokens = text_tokens(text, numbers, counter)
    else:
        tokens = counter(numbers.text("vocabulary") or "o200k_base", text)
    rounded = math.ceil(tokens)
    upper = upper_bound(rounded, numbers, has_tools=False, dialect="") if rounded else 0
    return TokenCount(
        tokens=rounded,
        upper=upper,
        accuracy=numbers.accuracy,
        parts=Parts(0, 0, rounded, 0),
        model=model,
        family=numbers.family,
        plain=rounded,
        message_tokens=(rounded,),
    )


def _count_conversation(
    conversation: Conversation, model: str, platform: str, counter: CountText
) -> TokenCount:
    note = ""
    custom = _registered_counter(model) if _registered else None
    if custom is not None:
        try:
            return _count_with(custom, conversation, model)
        # Any failure of a registered counter falls back to the built-in count.
        except Exception as error:  # noqa: BLE001
            note = f"the registered counter failed ({type(error).__name__})"
    numbers = family_constants(model, conversation.dialect, platform)
    _warn_if_unknown(numbers, model)
    try:
        return _count_rendered(conversation, model, numbers, counter, note)
    except TokenCountingError:
        raise
    # An unforeseen request must not stop the caller: estimate by length.
    except Exception as error:  # noqa: BLE001
        logged_faults("holdfast.tokens").add("count", error)
        return count_by_length(conversation, model, f"{NOT_RENDERED} ({type(error).__name__})")


def _registered_counter(model: str) -> TokenCounter | None:
    """Return the counter registered for the longest matching prefix, in any spelling of the id."""
    names = [model]
    with suppress(SettingsError):
        id_ = ProviderId.parse(model)
        names += [id_.format(), id_.id, id_.model]
    prefixes = [prefix for prefix in tuple(_registered) if any(n.startswith(prefix) for n in names)]
    return _registered.get(max(prefixes, key=len)) if prefixes else None


def _valid_count(tokens: object) -> int:
    """Return a custom counter's result; raise `TypeError` if it is no valid number of tokens."""
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        raise TypeError
    return tokens


def _count_with(custom: TokenCounter, conversation: Conversation, model: str) -> TokenCount:
    tokens = _valid_count(custom.count(conversation, model))
    accuracy = custom.accuracy if custom.accuracy in _SLACK else "heuristic"
    return TokenCount(
        tokens=tokens,
        upper=math.ceil(tokens * _SLACK[accuracy]),
        accuracy=accuracy,
        parts=Parts(0, 0, tokens, 0),
        model=model,
        family="registered",
        plain=tokens,
    )


def count_by_length(conversation: Conversation, model: str, note: str) -> TokenCount:
    """Estimate a quarter of the bytes as tokens, with half of them as the upper bound.

    This is the fallback when a request cannot be rendered.
    """
    size = len(conversation.frame.hollow) + sum(len(m.raw) for m in conversation.messages)
    tokens = math.ceil(size / 4)
    return TokenCount(
        tokens=tokens,
        upper=math.ceil(size / 2),
        accuracy="heuristic",
        parts=Parts(0, 0, tokens, 0),
        model=model,
        family=UNKNOWN,
        note=note,
        plain=tokens,
    )


def message_tokens(
    conversation: Conversation, messages: tuple[Message, ...], model: str, platform: str = ""
) -> float:
    """Return the tokens of some messages, counted as part of the same request."""
    numbers = family_constants(model, conversation.dialect, platform)
    alone = conversation.with_messages(messages)
    tally = tally_messages(alone, numbers, vocabulary.shared.count, model)
    return tally.system + tally.dialogue


def _count_rendered(
    conversation: Conversation, model: str, numbers: Constants, counter: CountText, note: str
) -> TokenCount:
    tally = tally_messages(conversation, numbers, counter, model)
    envelope = _envelope(conversation, numbers, counter, has_system=tally.system > 0)
    system = envelope.system + tally.system
    # OpenAI repeats a named response format in the header of every answer.
    messages = tally.dialogue + envelope.per_answer * tally.answers
    messages += _loaded_tool_tokens(conversation, numbers, counter)
    tokens = max(1, round(system + envelope.tools + messages + envelope.formatting))
    rounded = round(system), round(envelope.tools), round(messages)
    parts = Parts(*rounded, tokens - sum(rounded))
    return TokenCount(
        tokens=tokens,
        upper=upper_bound(
            tokens, numbers, has_tools=bool(conversation.tools), dialect=conversation.dialect
        ),
        accuracy=numbers.accuracy,
        parts=parts,
        model=model,
        family=numbers.family,
        note=note,
        plain=tokens,
        message_tokens=tally.each,
    )


def _loaded_tool_tokens(
    conversation: Conversation, numbers: Constants, counter: CountText
) -> float:
    """Return the tokens of deferred tools that the request's messages have loaded."""
    deferred = deferred_names(conversation) if numbers.root == "claude" else frozenset()
    if not deferred:
        return 0.0
    names = deferred & loaded_names(conversation)
    tools = (tool for tool in conversation.tools if tool.name in names)
    return loaded_tools(tools, numbers, counter)


# --- the frame ---------------------------------------------------------------------------

_envelopes: dict[tuple[object, ...], Envelope] = {}
_MOST_ENVELOPES = 512


def _envelope(
    conversation: Conversation, numbers: Constants, counter: CountText, *, has_system: bool
) -> Envelope:
    """Return the frame's tokens, cached because a client repeats it with every turn."""
    hollow = conversation.frame.hollow
    messages = conversation.messages
    first = messages[0].raw if messages and messages[0].role == "system" else b""
    last = messages[-1].role if messages else ""
    frame_key = (conversation.dialect, hash(hollow), len(hollow))
    key = (numbers.family, *frame_key, hash(first), has_system, last)
    envelope = _envelopes.get(key)
    if envelope is None:
        frame_view = request_frame(conversation, has_system=has_system)
        envelope = renderer(numbers).envelope(frame_view, numbers, counter)
        if len(_envelopes) >= _MOST_ENVELOPES:
            _envelopes.clear()
        _envelopes[key] = envelope
    return envelope


def _warn_if_unknown(numbers: Constants, model: str) -> None:
    if numbers.family == UNKNOWN or numbers.family.endswith("/newer"):
        which = (
            f"the tokens of {_loggable_name(model)}" if model else "the tokens of an unnamed model"
        )
        why = "its tokenizer is not known; usage that the provider reports corrects them"
        _warn_once(f"{which} are estimated: {why}")


def _loggable_name(name: str) -> str:
    """Return a model's name for a log; anything but a plausible name may be user content."""
    if not _NAME.fullmatch(name[: _MAX_NAME + 1]):
        return "(its name looks like no model's)"
    return repr(name if len(name) <= _MAX_LOGGED_NAME else name[:_MAX_LOGGED_NAME] + "…")


def _warn_once(text: str) -> None:
    if text not in _warned and len(_warned) < 1000:
        _warned.add(text)
        warnings.warn(text, UnknownModelWarning, stacklevel=4)
