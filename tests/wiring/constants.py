"""Constants that were settings once: what each changes, with another value put in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from holdfast.answer_cache.records import AnswerPolicy
from holdfast.cite import CitingRules
from holdfast.engine import Holdfast
from holdfast.fitting.options import LazyRules
from holdfast.settings import Settings
from holdfast.store import queue
from holdfast.workers import WorkLimits
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy.harness import ask, running_proxy, turns_of
from tests.wiring.answers import ASKED, LIKE, library_gives, proxy_says
from tests.wiring.library import with_engine
from tests.wiring.proxy import asked, sent_texts, tools_sent_by
from tests.wiring.proxy_summaries import folded, worked_off
from tests.wiring.wired import LARGE, MEDIUM, PROSE, Observe, Wired, worker_memory

_OPTIONS = "holdfast.engine.options"


def constant(kind: type, where: str, name: str, observe: Callable[[], object]) -> Observe:
    """Return the observation while a class that `where` uses has another default of a field."""

    def with_value(value: object, _: Path) -> object:
        with patch(f"{where}.{kind.__name__}", partial(kind, **{name: value})):
            return observe()

    return with_value


citing = partial(constant, CitingRules, _OPTIONS)
work = partial(constant, WorkLimits, _OPTIONS)
lazy = partial(constant, LazyRules, "holdfast.upstream.tool_finder")


def fit_cites_medium() -> object:
    async def fit(engine: Holdfast) -> bool:
        return bool((await engine.fit(chat(MEDIUM))).contents)

    return with_engine(fit)


def fit_points() -> object:
    async def fit(engine: Holdfast) -> bool:
        text = log(200)  # a pointer takes no request below what providers cache
        return bool((await engine.fit(chat(text, text))).contents)

    return with_engine(fit)


def citation_is_short() -> object:
    async def cite(engine: Holdfast) -> bool:
        return len((await engine.cite(PROSE)).text) < 500

    return with_engine(cite)


def large_is_read() -> object:
    async def cite(engine: Holdfast) -> str:
        return (await engine.cite(LARGE)).fidelity.level

    return with_engine(cite)


def memory_of_workers() -> object:
    async def cite(engine: Holdfast) -> object:
        await engine.cite(LARGE)
        return worker_memory(engine)

    return with_engine(cite)


def cost_of_a_fold() -> object:
    with folded() as (proxy, _upstream):
        return [(job.state, job.most_cost) for job in worked_off(proxy)]


def summary_tokens(most: int, _: Path) -> object:
    with patch.object(queue, "SUMMARY_TOKENS", most):
        return cost_of_a_fold()


def proxy_cites_medium() -> object:
    return MEDIUM in sent_texts(chat(MEDIUM), cite_policy="auto")


def proxy_points() -> object:
    content = log(200)  # a pointer takes no request below the 1,024 tokens that providers cache
    return sent_texts(chat(content, content), cite_policy="auto").count(content)


def proxy_citation_is_short() -> object:
    return len(sent_texts(chat(PROSE))) < 500


def proxy_reads_large() -> object:
    with running_proxy() as proxy:
        answer = asked(proxy, chat(LARGE))
        [turn] = turns_of(proxy, answer)
        warning = answer.headers.get("x-holdfast-warning", "")
        figures = ask(f"{proxy.url}/metrics").body
        counted = b'holdfast_overruns_total{reason="deadline"}' in figures
        ends = any("by its ends" in edit.what for edit in turn.edits)
        assert ends == counted == ("only its ends are shown" in warning)
        return ends


def memory_of_proxy_workers() -> object:
    with running_proxy() as proxy:
        asked(proxy, chat(LARGE))
        return worker_memory(proxy.service.engine)


def tools_sent(**settings: Any) -> Callable[[], object]:
    observe = tools_sent_by("lazy_tools", **settings)
    return lambda: observe("auto", Path())


@contextmanager
def answer_policy(**fields: object) -> Iterator[None]:
    of = AnswerPolicy.of

    def changed(settings: Settings) -> AnswerPolicy:
        return msgspec.structs.replace(of(settings), **fields)

    with patch.object(AnswerPolicy, "of", changed):
        yield


def answers_by(name: str, observe: Observe) -> Observe:
    def with_value(value: object, folder: Path) -> object:
        with answer_policy(**{name: value}):
            return observe(True, folder)

    return with_value


_LIKE = proxy_says({"question": ASKED}, {"question": LIKE})("enable_semantic_cache")
_SAMPLED = proxy_says(*({"question": question, "temperature": 0.7} for question in (ASKED, LIKE)))(
    "enable_semantic_cache"
)

LIBRARY: dict[str, Wired] = {
    "cite_tokens": Wired(citing("tokens", fit_cites_medium), None, 500),
    "cite_share": Wired(citing("share", fit_cites_medium), None, 0.001),
    "cite_repeats": Wired(citing("repeats", fit_points), True, False),
    "cite_max_tokens": Wired(citing("most_tokens", citation_is_short), 100, 800),
    "work_seconds": Wired(work("seconds", large_is_read), 0.01, 60.0),
    "work_memory": Wired(work("memory_bytes", memory_of_workers), 500_000_000, 600_000_000),
    "semantic_cache_similarity": Wired(
        answers_by("similarity", library_gives("enable_semantic_cache")), 0.97, 1.0
    ),
}
PROXY: dict[str, Wired] = {
    "cite_tokens": Wired(citing("tokens", proxy_cites_medium), None, 500),
    "cite_share": Wired(citing("share", proxy_cites_medium), None, 0.001),
    "cite_repeats": Wired(citing("repeats", proxy_points), True, False),
    "cite_max_tokens": Wired(citing("most_tokens", proxy_citation_is_short), 100, 800),
    "work_seconds": Wired(work("seconds", proxy_reads_large), 0.01, 60.0),
    "work_memory": Wired(work("memory_bytes", memory_of_proxy_workers), 500_000_000, 600_000_000),
    "lazy_tool_share": Wired(lazy("share", tools_sent(lazy_tool_tokens=1_000_000)), 0.001, 1.0),
    "tool_directory_tokens": Wired(lazy("directory_tokens", tools_sent()), 40, 800),
    "semantic_cache_similarity": Wired(answers_by("similarity", _LIKE), 0.97, 1.0),
    "semantic_cache_sampled": Wired(answers_by("sampled", _SAMPLED), True, False),
    "summary_tokens": Wired(summary_tokens, 60, 120),
}
