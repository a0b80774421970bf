"""A report as one HTML file without scripts; each claim's quotations unfold.

Nothing is loaded: the content security policy allows only the page's style, by its hash. Text from
sources is escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from urllib.parse import urlsplit

from holdfast.researching.markdown import place, places_of
from holdfast.researching.records import Finding
from holdfast.researching.report import CitedSource, Report

_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.55 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;line-height:1.25}h2{font-size:1.15rem;margin-top:2rem}
details{margin:.5rem 0;padding:.4rem .7rem;border-left:3px solid #4a7bd0;background:#8881}
details.low{border-color:#c77b2a}summary{cursor:pointer}
blockquote{margin:.5rem 0;padding-left:.8rem;border-left:2px solid #8886;white-space:pre-wrap}
.place,.meta{color:#777;font-size:.85rem}.but{border-color:#c0392b}
table{border-collapse:collapse;width:100%;font-size:.85rem;margin-top:.5rem}
td,th{text-align:left;padding:.25rem .5rem;border-bottom:1px solid #8884;vertical-align:top;
overflow-wrap:anywhere}
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"


def html_page(report: Report) -> str:
    """Return the report as a page."""
    return "\n".join(_page(report)) + "\n"


def _page(report: Report) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{escape(report.question)}</title>"
    yield f"<style>{_STYLE}</style></head><body>"
    yield f"<h1>{escape(report.question)}</h1>"
    yield f'<p class="meta">{escape(_about(report))}</p>'
    if report.summary:
        yield "<p>" + " ".join(
            f"{escape(each.text)} {_links(each.findings)}" for each in report.summary
        )
    if not report.findings:
        yield "<p>Nothing in the sources answers this."
    for number, question in enumerate(report.sub_questions):
        findings = [f for f in report.findings if f.question == number]
        if findings:
            yield f"<h2>{escape(question)}</h2>"
            for finding in findings:
                yield from _finding(finding)
    yield from _tables(report)
    yield from _legend(report)
    yield "</body></html>"


def _about(report: Report) -> str:
    by = f"by {report.model}" if report.model else "without a model: every claim is a quotation"
    when = f"{datetime.fromtimestamp(report.created, UTC):%Y-%m-%d}, " if report.created else ""
    return f"{when}{by}; {len(report.sources):,} of {report.sources_read:,} sources cited"


def _links(findings: tuple[str, ...]) -> str:
    return " ".join(f'<a class="place" href="#{escape(f)}">[{escape(f)}]</a>' for f in findings)


def _finding(finding: Finding) -> Iterator[str]:
    doubtful = ' class="low"' if finding.contradicting else ""
    yield f'<details id="{escape(finding.id)}"{doubtful}><summary>{escape(finding.claim)}'
    places = "; ".join(places_of(finding.supporting))
    yield f'<span class="place">[{escape(places)}; {escape(finding.confidence)}]</span></summary>'
    for kind, quotes in (("", finding.supporting), (' class="but"', finding.contradicting)):
        for quote in quotes:
            yield f"<blockquote{kind}>{escape(quote.text)}</blockquote>"
            where = f"{place(quote)}, {quote.ref}, bytes {quote.start:,}-{quote.stop:,}"
            yield f'<p class="place">{"but " if kind else ""}{escape(where)}</p>'
    yield "</details>"


def _tables(report: Report) -> Iterator[str]:
    if report.sources:
        yield "<h2>Sources</h2><table><tr><th><th>source<th>ref<th>quoted<th>quality<th>from</tr>"
        yield from map(_row, report.sources)
        yield "</table>"
    if report.left_out:
        yield "<h2>Left out</h2><table><tr><th>source<th>why</tr>"
        for each in report.left_out:
            yield f"<tr><td>{escape(each.name)}<td>{escape(each.note)}</tr>"
        yield "</table>"
    for warning in report.warnings:
        yield f'<p class="meta">{escape(warning)}'


def _legend(report: Report) -> Iterator[str]:
    """Yield the meaning of each confidence level that occurs."""
    names = {str(finding.confidence) for finding in report.findings}
    for name, meaning in report.confidence.items():
        if name in names:
            yield f'<p class="meta">{escape(name)}: {escape(meaning)}.'


def _row(source: CitedSource) -> str:
    name = escape(source.name)
    if urlsplit(source.url).scheme in ("http", "https"):
        name = f'<a href="{escape(source.url)}" rel="noreferrer noopener">{name}</a>'
    fidelity = source.fidelity
    share = f"{fidelity.level}, {fidelity.tokens_to:,} of {fidelity.tokens_from:,} tokens"
    cells = (escape(source.id), name, escape(source.ref), escape(share), escape(source.quality))
    return "<tr><td>" + "<td>".join((*cells, escape(source.provenance))) + "</tr>"
