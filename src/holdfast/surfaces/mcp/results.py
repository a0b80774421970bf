"""A tool's result on its way to the host: stored and cited where it is long, else as it came.

results: after structured. Texts and embedded texts give way to citations where the policy says so
(fitting/policy.py); images, sounds, links, `isError` and `_meta` are carried through. The router of
the seed (004-54): the result is stored, its facts are taken and its summary is queued behind the
answer, and the extract is what the host gets; a result that comes again is told with its summary.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import mcp_types as types
import msgspec

from holdfast.cite import Citation, CitingRules, count, is_long
from holdfast.engine import Holdfast
from holdfast.errors import PrivacyError, StoreError
from holdfast.expand.tool import NAME
from holdfast.fitting.policy import Arrival, Decision, Pressure, decide
from holdfast.privacy import apply, find
from holdfast.quoting import item
from holdfast.surfaces.mcp.structured import shorten

REFS_META = "holdfast/refs"
"""In `_meta` of a result: the refs that stand in it, for programs."""
SIZE_META = "anthropic/maxResultSizeChars"
_LARGEST_WHOLE = 500_000
"""Most characters that a tool may ask to be left whole; the host that reads the mark has it."""
_SHORTEST_CITED = 200
"""Characters up to which a block is not looked at: a server may send a million of them."""
_ROOM_IN_STRUCTURED = 2_000
"""Characters up to which a structured result is shortened once its text is cited."""


class Called(NamedTuple):
    """A call whose result comes."""

    tool: str
    """The name that the host knows, with its server."""
    arguments: Mapping[str, Any]
    output_schema: Any = None
    whole_characters: int = 0
    """Results up to this length are left whole, as the tool's own mark says."""


class Measured(NamedTuple):
    """A result as the host gets it, and what that saved."""

    result: types.CallToolResult
    from_tokens: int
    to_tokens: int
    refs: tuple[str, ...]


def whole_characters(meta: Mapping[str, Any] | None) -> int:
    """Up to how many characters a tool wants its results left whole."""
    asked = (meta or {}).get(SIZE_META)
    if not isinstance(asked, int) or isinstance(asked, bool):
        return 0
    return min(max(0, asked), _LARGEST_WHOLE)


class Results:
    """Cites what is long, over one engine."""

    def __init__(self, engine: Holdfast, *, window: int, opener: str = NAME) -> None:
        self._engine = engine
        self._pressure = Pressure(window, sees_window=False)
        self._opener = opener

    async def measured(self, result: types.CallToolResult, called: Called) -> Measured:
        """The result with citations for what is long; as it came where nothing is."""
        texts = [text for text in map(_text_of, result.content) if text is not None]
        characters = sum(map(len, texts))
        structured = _encoded(result.structured_content)
        tokens = partial(_tokens, [*texts, structured])
        whole = max(called.whole_characters, self._engine.options.rules.threshold)
        if characters <= whole and len(structured) <= whole:
            before = _rough([*texts, structured])
            return Measured(result, before, before, ())
        before = await self._engine.workers.off_loop(characters + len(structured), tokens)
        refs: list[str] = []
        content = await self._content(result.content, called, refs)
        value = await self._structured(result, structured, called, refs)
        if not refs:
            return Measured(result, before, before, ())
        meta = {**(result.meta or {}), REFS_META: refs}
        cited = result.model_copy(
            update={"content": content, "structured_content": value, "meta": meta}
        )
        left = [text for text in map(_text_of, content) if text is not None]
        after = _rough([*left, _encoded(value)])
        return Measured(cited, before, min(before, after), tuple(refs))

    # --- texts -----------------------------------------------------------------------------------

    async def _content(
        self, blocks: list[types.ContentBlock], called: Called, refs: list[str]
    ) -> list[types.ContentBlock]:
        """The blocks, those that are long cited; many that are long together are cited as one."""
        content: list[types.ContentBlock] = []
        for block in blocks:
            text = _text_of(block)
            if text is None or len(text) <= _SHORTEST_CITED:
                content.append(block)
                continue
            citation = await self._cited(text, called)
            if citation is None:
                content.append(block)
            else:
                refs.append(citation.ref_id)
                content.append(_with_text(block, citation.text))
        whole = [block.text for block in content if isinstance(block, types.TextContent)]
        if len(whole) < 2 or refs:
            return content
        citation = await self._cited("\n".join(whole), called)
        if citation is None:
            return content
        refs.append(citation.ref_id)
        rest = [block for block in content if not isinstance(block, types.TextContent)]
        return [types.TextContent(text=citation.text), *rest]

    async def _cited(self, text: str, called: Called) -> Citation | None:
        """The citation of a text; None if it stays whole."""
        if len(text) <= called.whole_characters:
            return None
        workers, rules = self._engine.workers, self._engine.options.rules
        arrival = Arrival(text, tool=called.tool, arguments=called.arguments)
        decision: Decision = await workers.off_loop(
            len(text), partial(decide, arrival, self._pressure, rules)
        )
        if decision.action == "whole" or not self._engine.options.cites:
            return None
        rules = msgspec.structs.replace(
            rules,
            threshold=rules.threshold if is_long(text, rules) else 0,
            room=decision.room,
            shorten_to=decision.threshold,
            opener=self._opener,
        )
        with suppress(PrivacyError):  # what may not be stored is not taken out either
            return await self._stored(text, called, rules)
        return None

    async def _stored(self, content: Any, called: Called, rules: CitingRules) -> Citation | None:
        """Store a content and cite it; one that cannot be stored is not taken out."""
        try:
            citation = await self._engine.cite(
                content, tool=called.tool, rules=rules, learns_later=True
            )
        except StoreError:
            return None
        if not citation.ref_id:
            return None
        return await self._summarised(citation, rules)

    async def _summarised(self, citation: Citation, rules: CitingRules) -> Citation:
        """The citation with a summary of its content; one that is missing is queued (C41)."""
        engine = self._engine
        if engine.parts.summary_queue is None or citation.content is None:
            return citation
        try:
            info = await engine.store.info(engine.scope, citation.ref_id)
        except StoreError:  # the extract is as good as it was
            return citation
        if info is None:
            return citation
        if info.summary == citation.content.summary:  # the extract's own
            await engine.parts.summary_queue.listed(engine.scope, info)
            return citation
        # A model has read the original: what may not be shown may stand in its words.
        summary = apply(rules.privacy, info.summary, find(info.summary))
        head, end, rest = citation.text.partition("\n")
        text = f"{head}\n{item(summary)}{end}{rest}"
        return msgspec.structs.replace(citation, text=text, tokens=count(text))

    # --- structured results ----------------------------------------------------------------------

    async def _structured(
        self, result: types.CallToolResult, encoded: str, called: Called, refs: list[str]
    ) -> Any:
        """The structured result, shorter if it is long; its schema still holds."""
        value = result.structured_content
        if value is None or (not refs and await self._stays(encoded, called)):
            return value
        rules = msgspec.structs.replace(self._engine.options.rules, opener=self._opener)
        try:
            citation = await self._stored(encoded, called, rules)
        except PrivacyError:
            citation = None
        if citation is None:
            return value
        work = partial(
            shorten, value, called.output_schema, citation.ref_id, self._opener, _ROOM_IN_STRUCTURED
        )
        shortened = await self._engine.workers.off_loop(len(encoded), work)
        if shortened.paths and citation.ref_id not in refs:
            refs.append(citation.ref_id)
        return shortened.value

    async def _stays(self, encoded: str, called: Called) -> bool:
        if len(encoded) <= called.whole_characters or not self._engine.options.cites:
            return True
        arrival = Arrival(encoded, tool=called.tool, arguments=called.arguments)
        work = partial(decide, arrival, self._pressure, self._engine.options.rules)
        decision: Decision = await self._engine.workers.off_loop(len(encoded), work)
        return decision.action == "whole"


def _text_of(block: types.ContentBlock) -> str | None:
    """The text of a block that has one."""
    if isinstance(block, types.TextContent):
        return block.text
    if isinstance(block, types.EmbeddedResource):
        resource = block.resource
        return resource.text if isinstance(resource, types.TextResourceContents) else None
    return None


def _with_text(block: types.ContentBlock, text: str) -> types.ContentBlock:
    """The same block with another text: what else it says is carried through."""
    if isinstance(block, types.EmbeddedResource):
        resource = block.resource.model_copy(update={"text": text, "mime_type": "text/plain"})
        return block.model_copy(update={"resource": resource})
    return block.model_copy(update={"text": text})


def _encoded(value: Any) -> str:
    if value is None:
        return ""
    return msgspec.json.encode(value).decode("utf-8", "replace")


def _tokens(texts: list[str]) -> int:
    return sum(map(count, texts))


def _rough(texts: list[str]) -> int:
    """Tokens of short texts, exactly; of long ones a quarter of their bytes."""
    return sum(count(text) if len(text) <= 8_000 else len(text) // 4 for text in texts)
