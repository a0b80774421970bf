"""Cite the long parts of a tool's result; short results are returned unchanged.

Texts are replaced by citations where the policy says so (fitting/policy.py); images, sounds, links,
`isError` and `_meta` are passed through. A stored result is also read for facts and queued for a
summary, which its citation has the next time.
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
"""Key in a result's `_meta` for the refs in it, for programs."""
SIZE_META = "anthropic/maxResultSizeChars"
_LARGEST_UNCITED = 500_000
"""Maximum characters that a tool may request to be left uncited; the host that defined the mark has
the same limit."""
_SHORTEST_CITED = 200
"""Blocks up to this length are not checked: a server may send a million of them."""
_ROOM_IN_STRUCTURED = 2_000
"""Target length of a structured result after its text was cited."""


class GatewayCall(NamedTuple):
    """A call whose result is processed."""

    tool: str
    """The name that the host uses, with the server's."""
    arguments: Mapping[str, Any]
    output_schema: Any = None
    max_uncited_characters: int = 0
    """Results up to this length stay complete, by the tool's own mark."""


class CitedResult(NamedTuple):
    """A result for the host, with the tokens before and after."""

    result: types.CallToolResult
    from_tokens: int
    to_tokens: int
    refs: tuple[str, ...]


def max_uncited_characters(meta: Mapping[str, Any] | None) -> int:
    """Return up to how many characters a tool wants its results complete."""
    limit = (meta or {}).get(SIZE_META)
    if not isinstance(limit, int) or isinstance(limit, bool):
        return 0
    return min(max(0, limit), _LARGEST_UNCITED)


class Results:
    """Cites the long parts of results, with one engine."""

    def __init__(self, engine: Holdfast, *, window: int, opener: str = NAME) -> None:
        self._engine = engine
        self._pressure = Pressure(window, sees_window=False)
        self._opener = opener

    async def cite_result(self, result: types.CallToolResult, called: GatewayCall) -> CitedResult:
        """Return the result with citations for its long parts."""
        texts = [text for text in map(_text_of, result.content) if text is not None]
        characters = sum(map(len, texts))
        structured = _to_json(result.structured_content)
        tokens = partial(_tokens, [*texts, structured])
        uncited_length = max(called.max_uncited_characters, self._engine.options.rules.threshold)
        if characters <= uncited_length and len(structured) <= uncited_length:
            before = _rough_tokens([*texts, structured])
            return CitedResult(result, before, before, ())
        before = await self._engine.workers.off_loop(characters + len(structured), tokens)
        refs: list[str] = []
        content = await self._content(result.content, called, refs)
        value = await self._structured(result, structured, called, refs)
        if not refs:
            return CitedResult(result, before, before, ())
        meta = {**(result.meta or {}), REFS_META: refs}
        cited = result.model_copy(
            update={"content": content, "structured_content": value, "meta": meta}
        )
        remaining_texts = [text for text in map(_text_of, content) if text is not None]
        after = _rough_tokens([*remaining_texts, _to_json(value)])
        return CitedResult(cited, before, min(before, after), tuple(refs))

    # --- texts -----------------------------------------------------------------------------------

    async def _content(
        self, blocks: list[types.ContentBlock], called: GatewayCall, refs: list[str]
    ) -> list[types.ContentBlock]:
        """Return the blocks with long ones cited; if only their sum is long, cite them as one."""
        content: list[types.ContentBlock] = []
        for block in blocks:
            text = _text_of(block)
            if text is None or len(text) <= _SHORTEST_CITED:
                content.append(block)
                continue
            citation = await self._cite_text(text, called)
            if citation is None:
                content.append(block)
            else:
                refs.append(citation.ref_id)
                content.append(_with_text(block, citation.text))
        uncited_texts = [block.text for block in content if isinstance(block, types.TextContent)]
        if len(uncited_texts) < 2 or refs:
            return content
        citation = await self._cite_text("\n".join(uncited_texts), called)
        if citation is None:
            return content
        refs.append(citation.ref_id)
        other_blocks = [block for block in content if not isinstance(block, types.TextContent)]
        return [types.TextContent(text=citation.text), *other_blocks]

    async def _cite_text(self, text: str, called: GatewayCall) -> Citation | None:
        """Return the citation of a text; None if it stays complete."""
        if len(text) <= called.max_uncited_characters:
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
        with suppress(PrivacyError):  # a content that may not be stored must stay in the result
            return await self._store(text, called, rules)
        return None

    async def _store(
        self, content: Any, called: GatewayCall, rules: CitingRules
    ) -> Citation | None:
        """Store a content and cite it; None if it cannot be stored."""
        try:
            citation = await self._engine.cite(
                content, tool=called.tool, rules=rules, learns_later=True
            )
        except StoreError:
            return None
        if not citation.ref_id:
            return None
        return await self._with_summary(citation, rules)

    async def _with_summary(self, citation: Citation, rules: CitingRules) -> Citation:
        """Return the citation with its content's summary; a missing one is queued."""
        engine = self._engine
        if engine.parts.summary_queue is None or citation.content is None:
            return citation
        try:
            info = await engine.store.info(engine.scope, citation.ref_id)
        except StoreError:  # the extract is still valid
            return citation
        if info is None:
            return citation
        if info.summary == citation.content.summary:  # the summary is the extract's own
            await engine.parts.summary_queue.listed(engine.scope, info)
            return citation
        # A model has read the original, so its words may hold data that must be masked.
        summary = apply(rules.privacy, info.summary, find(info.summary))
        head, end, remainder = citation.text.partition("\n")
        text = f"{head}\n{item(summary)}{end}{remainder}"
        return msgspec.structs.replace(citation, text=text, tokens=count(text))

    # --- structured results ----------------------------------------------------------------------

    async def _structured(
        self, result: types.CallToolResult, encoded: str, called: GatewayCall, refs: list[str]
    ) -> Any:
        """Return the structured result, shortened if it is long, still valid for its schema."""
        value = result.structured_content
        if value is None or (not refs and await self._stays_complete(encoded, called)):
            return value
        rules = msgspec.structs.replace(self._engine.options.rules, opener=self._opener)
        try:
            citation = await self._store(encoded, called, rules)
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

    async def _stays_complete(self, encoded: str, called: GatewayCall) -> bool:
        if len(encoded) <= called.max_uncited_characters or not self._engine.options.cites:
            return True
        arrival = Arrival(encoded, tool=called.tool, arguments=called.arguments)
        work = partial(decide, arrival, self._pressure, self._engine.options.rules)
        decision: Decision = await self._engine.workers.off_loop(len(encoded), work)
        return decision.action == "whole"


def _text_of(block: types.ContentBlock) -> str | None:
    """Return the text of a block, if it has one."""
    if isinstance(block, types.TextContent):
        return block.text
    if isinstance(block, types.EmbeddedResource):
        resource = block.resource
        return resource.text if isinstance(resource, types.TextResourceContents) else None
    return None


def _with_text(block: types.ContentBlock, text: str) -> types.ContentBlock:
    """Return the same block with another text."""
    if isinstance(block, types.EmbeddedResource):
        resource = block.resource.model_copy(update={"text": text, "mime_type": "text/plain"})
        return block.model_copy(update={"resource": resource})
    return block.model_copy(update={"text": text})


def _to_json(value: Any) -> str:
    if value is None:
        return ""
    return msgspec.json.encode(value).decode("utf-8", "replace")


def _tokens(texts: list[str]) -> int:
    return sum(map(count, texts))


def _rough_tokens(texts: list[str]) -> int:
    """Return the exact tokens of short texts and a quarter of the bytes of long ones."""
    return sum(count(text) if len(text) <= 8_000 else len(text) // 4 for text in texts)
