"""Count the input tokens of a request before it is sent.

counting: after render, before calibration. Sums what the renderer of the model's family gives, and
says how far it can be trusted. What was counted once is remembered with its message, so a request
to which one message was added costs one message.
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
from holdfast.tokens.families import UNKNOWN, Accuracy, Constants, resolve
from holdfast.tokens.provider_ids import ProviderId
from holdfast.tokens.reading import is_request, read_request
from holdfast.tokens.render import renderer
from holdfast.tokens.render.claude import loaded_tools, text_tokens
from holdfast.tokens.render.parts import Envelope
from holdfast.tokens.render.request import request
from holdfast.tokens.tally import tally_messages
from holdfast.tokens.vocabulary import CountText
from holdfast.wire import Conversation, Limits, Message
from holdfast.wire.loading import held_back, loaded


class UnknownModelWarning(HoldfastWarning):
    """A model is not known, so its tokens are estimated."""


class Parts(msgspec.Struct, frozen=True):
    """Where the tokens of a request are."""

    system: int
    tools: int
    messages: int
    formatting: int
    """Headers, hidden prompts and response schemas."""


class TokenCount(msgspec.Struct, frozen=True, kw_only=True):
    """A count, and how far it can be trusted."""

    tokens: int
    """The best estimate."""
    upper: int
    """What the provider will not report more than, in at least 99 of 100 cases."""
    accuracy: Accuracy
    parts: Parts
    model: str
    family: str
    """The family of models whose numbers were used."""
    note: str = ""
    """Why the count is less exact than it could be; empty if it is not."""
    plain: int
    """The tokens before calibration."""
    message_tokens: tuple[float, ...] = ()

    @property
    def per_message(self) -> tuple[int, ...]:
        """The tokens of each message."""
        return tuple(round(tokens) for tokens in self.message_tokens)

    def __repr__(self) -> str:
        return f"<TokenCount {self.tokens}, at most {self.upper}, {self.accuracy}>"


class TokenCounter(Protocol):
    """Counts requests for a provider in its own way; see `register_counter`."""

    @property
    def accuracy(self) -> Accuracy:
        """How far its counts can be trusted."""

    def count(self, conversation: Conversation, model: str) -> int:
        """Input tokens of a request."""


class Correction(Protocol):
    """What a calibration does to a count."""

    def correct(self, counted: TokenCount) -> TokenCount:
        """The count, with what was learnt about its model."""


NOT_RENDERED = "could not be rendered"
"""How the note of a count begins that was made by length, after an internal error."""
_DEFAULT_LIMITS = Limits()
_registered: dict[str, TokenCounter] = {}
_warned: set[str] = set()
# Linear: a class and a bound, and never more than _LONGEST_NAME + 1 characters are looked at.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,99}")
_LONGEST_NAME = 100
_SHOWN = 40
"""Characters of a model's name in a warning; most have fewer, and a log needs no more to tell."""
# How far above the count of a registered counter a report may lie, by what the counter says.
_SLACK: dict[Accuracy, float] = {"exact": 1.0, "calibrated": 1.1, "heuristic": 1.5}


def register_counter(prefix: str, counter: TokenCounter | None) -> None:
    """Count requests to models whose id starts with `prefix` by your own; None takes it back.

    Ids are compared as given and as `provider:model`, so `openai`, `openai:gpt-4o` and `gpt-4o` all
    stand for `gpt-4o-mini`; the longest prefix wins. If the counter raises or gives no number, the
    built-in count is used instead, and the count says so.
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
    memory: vocabulary.Memory = vocabulary.shared,
    limits: Limits = _DEFAULT_LIMITS,
) -> TokenCount:
    """Count the input tokens of a request body (bytes, text, dictionary, Conversation) or a text.

    The model is taken from the body if it is not given. `platform` says where the request goes
    (`openrouter`, `groq`, `ollama`, `vertex`, …) where that is not the vendor itself.
    """
    _refuse_unless_text(model or "", "the model")
    if isinstance(body_or_text, Conversation):
        conversation = body_or_text
    elif isinstance(body_or_text, str) and dialect is None and not is_request(body_or_text):
        return _of_text(body_or_text, model or "", memory.count)
    else:
        conversation = read_request(body_or_text, dialect, limits)
    model = model or conversation.model or ""
    counted = _of_conversation(conversation, model, platform, memory.count)
    return calibration.correct(counted) if calibration is not None else counted


def estimate_tokens(text: str, provider_id: str, provider_manager: Any = None) -> int:
    """Tokens of a text: by the provider's own counter, else by vocabulary, else by its length."""
    _refuse_unless_text(text, "what is counted")
    _refuse_unless_text(provider_id, "the provider id")
    native = getattr(provider_manager, "count_tokens", None)
    if native is not None:
        try:
            return _checked(native(text, provider_id))
        except Exception as error:  # noqa: BLE001 - whatever it raises, counting goes on (001-61)
            _warn_once(f"the counter of {_shown(provider_id)} failed ({type(error).__name__})")
    return _of_text(text, provider_id, vocabulary.shared.count).tokens


def _refuse_unless_text(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise TokenCountingError(
            f"{what} must be text, not {type(value).__name__}", fix="Pass a string."
        )


# --- how it is counted ---------------------------------------------------------------------------


def _of_text(text: str, model: str, counter: CountText) -> TokenCount:
    numbers = resolve(model, "openai-chat")
    _warn_if_unknown(numbers, model)
    if numbers.root == "claude":
        tokens = text_tokens(text, numbers, counter)
    else:
        tokens = counter(numbers.text("vocabulary") or "o200k_base", text)
    whole = math.ceil(tokens)
    upper = upper_bound(whole, numbers, has_tools=False, dialect="") if whole else 0
    return TokenCount(
        tokens=whole,
        upper=upper,
        accuracy=numbers.accuracy,
        parts=Parts(0, 0, whole, 0),
        model=model,
        family=numbers.family,
        plain=whole,
        message_tokens=(whole,),
    )


def _of_conversation(
    conversation: Conversation, model: str, platform: str, counter: CountText
) -> TokenCount:
    note = ""
    own = _own_counter(model) if _registered else None
    if own is not None:
        try:
            return _of_own(own, conversation, model)
        except Exception as error:  # noqa: BLE001 - another's code; counting goes on (001-61)
            note = f"the registered counter failed ({type(error).__name__})"
    numbers = resolve(model, conversation.dialect, platform)
    _warn_if_unknown(numbers, model)
    try:
        return _rendered(conversation, model, numbers, counter, note)
    except TokenCountingError:
        raise
    except Exception as error:  # noqa: BLE001 - a request stranger than any we met (001-61)
        logged_faults("holdfast.tokens").add("count", error)
        return by_length(conversation, model, f"{NOT_RENDERED} ({type(error).__name__})")


def _own_counter(model: str) -> TokenCounter | None:
    """The counter registered for the longest beginning of the model's id, in any spelling."""
    names = [model]
    with suppress(SettingsError):
        id_ = ProviderId.parse(model)
        names += [id_.format(), id_.id, id_.model]
    prefixes = [prefix for prefix in tuple(_registered) if any(n.startswith(prefix) for n in names)]
    return _registered.get(max(prefixes, key=len)) if prefixes else None


def _checked(tokens: object) -> int:
    """A number of tokens that another's counter gave; whatever is none raises."""
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        raise TypeError
    return tokens


def _of_own(own: TokenCounter, conversation: Conversation, model: str) -> TokenCount:
    tokens = _checked(own.count(conversation, model))
    accuracy = own.accuracy if own.accuracy in _SLACK else "heuristic"
    return TokenCount(
        tokens=tokens,
        upper=math.ceil(tokens * _SLACK[accuracy]),
        accuracy=accuracy,
        parts=Parts(0, 0, tokens, 0),
        model=model,
        family="registered",
        plain=tokens,
    )


def by_length(conversation: Conversation, model: str, note: str) -> TokenCount:
    """A quarter of the bytes, and at most half of them: the last resort."""
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
    """Tokens of some messages alone, as the same request would carry them."""
    numbers = resolve(model, conversation.dialect, platform)
    alone = conversation.with_messages(messages)
    tally = tally_messages(alone, numbers, vocabulary.shared.count, model)
    return tally.system + tally.said


def _rendered(
    conversation: Conversation, model: str, numbers: Constants, counter: CountText, note: str
) -> TokenCount:
    tally = tally_messages(conversation, numbers, counter, model)
    envelope = _envelope(conversation, numbers, counter, has_system=tally.system > 0)
    system = envelope.system + tally.system
    # A named response format is repeated in the header of every answer.
    messages = tally.said + envelope.per_answer * tally.answers
    messages += _loaded(conversation, numbers, counter)
    tokens = max(1, round(system + envelope.tools + messages + envelope.formatting))
    whole = round(system), round(envelope.tools), round(messages)
    parts = Parts(*whole, tokens - sum(whole))
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


def _loaded(conversation: Conversation, numbers: Constants, counter: CountText) -> float:
    """Tokens of the tools that a request holds back, and its messages have had loaded."""
    held = held_back(conversation) if numbers.root == "claude" else frozenset()
    if not held:
        return 0.0
    names = held & loaded(conversation)
    tools = (tool for tool in conversation.tools if tool.name in names)
    return loaded_tools(tools, numbers, counter)


# --- the frame ---------------------------------------------------------------------------

_envelopes: dict[tuple[object, ...], Envelope] = {}
_MOST_ENVELOPES = 512


def _envelope(
    conversation: Conversation, numbers: Constants, counter: CountText, *, has_system: bool
) -> Envelope:
    """The frame's tokens; a client sends the same system text and tools with every turn."""
    hollow = conversation.frame.hollow
    messages = conversation.messages
    first = messages[0].raw if messages and messages[0].role == "system" else b""
    last = messages[-1].role if messages else ""
    frame = (conversation.dialect, hash(hollow), len(hollow))
    key = (numbers.family, *frame, hash(first), has_system, last)
    envelope = _envelopes.get(key)
    if envelope is None:
        frame_view = request(conversation, has_system=has_system)
        envelope = renderer(numbers).envelope(frame_view, numbers, counter)
        if len(_envelopes) >= _MOST_ENVELOPES:
            _envelopes.clear()
        _envelopes[key] = envelope
    return envelope


def _warn_if_unknown(numbers: Constants, model: str) -> None:
    if numbers.family == UNKNOWN or numbers.family.endswith("/newer"):
        which = f"the tokens of {_shown(model)}" if model else "the tokens of an unnamed model"
        why = "its tokenizer is not known; usage that the provider reports corrects them"
        _warn_once(f"{which} are estimated: {why}")


def _shown(name: str) -> str:
    """A model's name for a log; a client may send anything as one, and a prompt is no name."""
    if not _NAME.fullmatch(name[: _LONGEST_NAME + 1]):
        return "(its name looks like no model's)"
    return repr(name if len(name) <= _SHOWN else name[:_SHOWN] + "…")


def _warn_once(text: str) -> None:
    if text not in _warned and len(_warned) < 1000:
        _warned.add(text)
        warnings.warn(text, UnknownModelWarning, stacklevel=4)
