"""What may be done to pieces: fold them into a digest, or shorten the results in them.

edits: after pieces. An original that leaves is handed to the bench, which names its ref.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from holdfast.trim.anchors import asks
from holdfast.trim.pieces import Bench, Piece
from holdfast.trim.standing import STAND, Fold, Stand, edits_of, originals_of, refs_of
from holdfast.wire import DIALECTS, Block, Entry, Message, Opaque, Text, ToolCall, ToolResult
from holdfast.wire.strict import encode, splice

_QUOTED = 80
_MOST_QUOTES = 3
_MOST_REFS = 6
_LEAST_CUT = 120
"""Characters; to cut less than this out of a text is not worth the mark it leaves."""


def fold(pieces: Sequence[Piece], bench: Bench, *, summary: str = "", terse: bool = False) -> Piece:
    """Put one digest in the place of neighbouring pieces; a terse one is a line.

    Without a new summary, those of the digests among the pieces are kept.
    """
    tools: Counter[str] = Counter()
    questions: list[str] = []
    summaries: list[str] = []
    originals: list[Message] = []
    refs: list[str] = []
    messages = 0
    tokens = 0.0
    for piece in pieces:
        for message in piece.messages:
            originals.extend(originals_of(message))
        if piece.fold is not None:
            refs.extend(piece.fold.refs)
            tools.update(dict(piece.fold.tools))
            questions.extend(piece.fold.questions)
            summaries.extend(filter(None, [piece.fold.summary]))
            messages += piece.fold.messages
            tokens += piece.fold.tokens
            continue
        messages += len(piece.messages)
        tokens += piece.tokens
        for message in piece.messages:
            refs.extend(refs_of(message))
            tools.update(call.name for call in message.calls)
            if asks(message):
                questions.append(_quote(message))
    whole = b"[" + b",".join([bytes(message.span) for message in originals]) + b"]"
    made = Fold(
        pieces[0].start,
        pieces[-1].stop,
        messages,
        round(tokens),
        tuple(sorted(tools.items(), key=lambda item: (-item[1], item[0]))),
        tuple(questions[:_MOST_QUOTES]),
        summary or " ".join(summaries),
        bench.keep("fold", whole, tokens),
        tuple(dict.fromkeys(refs)),
    )
    dialect = DIALECTS[bench.dialect]
    [value] = dialect.compose([Entry("user", (Text(text=digest(made, terse=terse)),))])
    message = Message(encode(value), "user", dialect)
    shown = (made.ref_id, *made.refs[:_MOST_REFS]) if made.ref_id else ()
    STAND.put(message, Stand(tuple(originals), refs=shown, fold=made))
    return Piece((message,), made.start, made.stop, 0, "user", fold=made)


def transcript(pieces: Sequence[Piece]) -> str:
    """What was said in pieces, as a text to summarise; a digest speaks with its own words."""
    lines = []
    for piece in pieces:
        for message in piece.messages:
            for block in message.blocks:
                if isinstance(block, ToolCall):
                    lines.append(f"{message.role} calls {block.name}: {block.arguments}")
                elif isinstance(block, ToolResult):
                    lines.append(f"result: {block.text}")
                elif isinstance(block, Text):
                    lines.append(f"{message.role}: {block.text}")
    return "\n".join(lines)


def digest(made: Fold, *, terse: bool = False) -> str:
    """The text that stands for what was folded: the same for the same messages."""
    if terse:
        at = f": {made.ref_id}" if made.ref_id else ""
        return f"[Folded: messages {made.start} to {made.stop - 1}{at}]"
    parts = [
        f"[Folded: messages {made.start} to {made.stop - 1} of this conversation, "
        f"{made.messages} messages, about {made.tokens} tokens."
    ]
    if made.tools:
        shown = ", ".join(f"{name} {number}x" for name, number in made.tools[:8])
        parts.append(f"Tools called: {shown}.")
    if made.questions:
        parts.append("The user asked: " + "; ".join(made.questions) + ".")
    if made.summary:
        parts.append(f"In short: {made.summary}")
    if made.ref_id:
        parts.append(f'Open them: expand_ref("{made.ref_id}").')
        if made.refs:
            parts.append("Results among them: " + ", ".join(made.refs[:_MOST_REFS]) + ".")
    return " ".join(parts) + "]"


def _quote(message: Message) -> str:
    text = " ".join(b.text for b in message.blocks if isinstance(b, Text) and b.text)
    words = " ".join(text.split())
    return f'"{words[:_QUOTED]}…"' if len(words) > _QUOTED else f'"{words}"'


def shorten_results(
    piece: Piece, bench: Bench, most: int, *, one_line: bool = False
) -> Piece | None:
    """Cut the middle out of a piece's tool results; None if none is longer than `most`."""
    messages = tuple(_shortened(m, bench, most, one_line=one_line) for m in piece.messages)
    if messages == piece.messages:  # messages compare by identity
        return None
    # Its tokens go with its size, which is near enough to choose by; the result is counted anew.
    share = sum(len(m.raw) for m in messages) / sum(len(m.raw) for m in piece.messages)
    return msgspec.structs.replace(piece, messages=messages, tokens=piece.tokens * share)


def _shortened(message: Message, bench: Bench, most: int, *, one_line: bool) -> Message:
    if not message.results:
        return message
    dialect = DIALECTS[bench.dialect]
    span = message.span
    refs: list[str] = list(refs_of(message))
    [original] = originals_of(message)
    texts = zip(result_texts(message), result_texts(original), strict=True)
    for (result, block, text), (_, _, whole) in texts:
        if len(text) <= most + _LEAST_CUT or result.is_error:
            continue
        ref = ""
        if any(map(text.startswith, (f"[{known}" for known in refs))):
            shorter = _first_lines(text)
        else:  # what was cut before is cut anew: a ref leads to the original, not to a cut of it
            data = whole.encode("utf-8", "surrogatepass")
            ref = bench.keep("tool_result", data, len(data) / 4)
            shorter = middle_cut(whole, most, ref)
        if one_line:
            shorter = " ".join(shorter.split())
        if len(shorter) < len(text):
            span = splice(span, block.slot, encode(dialect.content(block, shorter)))
            refs.extend(filter(None, [ref]))
    if span is message.span:
        return message
    made = Message(span, message.role, dialect)
    STAND.put(made, Stand((original,), edits_of(message), tuple(dict.fromkeys(refs))))
    return made


def result_texts(message: Message) -> Iterator[tuple[ToolResult, Block, str]]:
    """The texts of a message's results, each with the block to write another into.

    A result that is only text is one; of one with images in it, each text is one for itself.
    """
    for result in message.results:
        if all(map(_is_text, result.parts)):
            yield result, result, result.text
            continue
        for part in result.parts:
            if isinstance(part, Text) and part.slot:
                yield result, part, part.text


def _is_text(part: Block) -> bool:
    # Converse gives JSON values as parts of their own; the text of the result holds them.
    return isinstance(part, Text) or (isinstance(part, Opaque) and part.type == "json")


def _first_lines(citation: str) -> str:
    """The ref of a citation, and what it is."""
    return "\n".join(citation.split("\n", 2)[:2])


def middle_cut(text: str, most: int, ref: str = "") -> str:
    """The beginning and the end of a text, and how much is missing between."""
    head, tail = text[: most * 2 // 3], text[len(text) - most // 3 :]
    gone = len(text) - len(head) - len(tail)
    at = f": {ref}" if ref else ""
    return f"{head}\n[… {gone} characters cut{at} …]\n{tail}"
