"""Bad days of an upstream, each as a turn of its script."""

from __future__ import annotations

import gzip
import socket
import struct
from dataclasses import replace

from aiohttp import web

from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import Fault, UpstreamTurn
from tests.wire.responses.streams import Script

SAID = says(text("Before ", "the ", "trouble."))


def status(code: int, **headers: str) -> Fault:
    async def fault(spoken: UpstreamTurn) -> web.StreamResponse:
        return spoken.fail(code, "a bad day", **headers)

    return Fault(fault)


@Fault
async def reset(spoken: UpstreamTurn) -> web.StreamResponse:
    """Break the connection before a single byte."""
    assert spoken.request.transport is not None
    spoken.request.transport.abort()
    return web.Response()


@Fault
async def reset_by_the_network(spoken: UpstreamTurn) -> web.StreamResponse:
    """Reset the connection before a single byte, as a firewall or a crash does."""
    transport = spoken.request.transport
    assert transport is not None
    # To linger for no time is to send a reset in the place of an end.
    transport.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    transport.abort()
    return web.Response()


@Fault
async def reset_midway(spoken: UpstreamTurn) -> web.StreamResponse:
    """Break the connection in the middle of the answer."""
    response = await _half_said(spoken)
    assert spoken.request.transport is not None
    spoken.request.transport.close()
    return response


@Fault
async def reset_before_the_first_event(spoken: UpstreamTurn) -> web.StreamResponse:
    """Begin a stream, and break the connection."""
    response = await spoken.stream()
    assert spoken.request.transport is not None
    spoken.request.transport.close()
    return response


@Fault
async def reset_inside_an_event(spoken: UpstreamTurn) -> web.StreamResponse:
    """Break the connection in the middle of an event."""
    response = await spoken.stream()
    *whole, last = _first_half(spoken)
    for event in [*whole, last[: len(last) // 2]]:
        await response.write(event)
    assert spoken.request.transport is not None
    spoken.request.transport.close()
    return response


@Fault
async def truncated(spoken: UpstreamTurn) -> web.StreamResponse:
    """End the answer cleanly, but too early: in the middle of an event, or of the JSON."""
    if not spoken.got.streams:
        body = spoken.body(SAID)
        return web.Response(body=body[: len(body) // 2], content_type="application/json")
    response = await spoken.stream()
    *whole, last = _first_half(spoken)
    for event in [*whole, last[: len(last) // 2]]:
        await response.write(event)
    await response.write_eof()
    return response


@Fault
async def cut_between_events(spoken: UpstreamTurn) -> web.StreamResponse:
    """End a stream cleanly after a whole event, without its end."""
    response = await spoken.stream()
    for event in _first_half(spoken):
        await response.write(event)
    await response.write_eof()
    return response


@Fault
async def stall(spoken: UpstreamTurn) -> web.StreamResponse:
    """Accept the request and never respond."""
    await spoken.never()
    raise AssertionError


@Fault
async def stall_midway(spoken: UpstreamTurn) -> web.StreamResponse:
    """Say something, then nothing."""
    response = await _half_said(spoken)
    await spoken.never()
    return response


@Fault
async def endless(spoken: UpstreamTurn) -> web.StreamResponse:
    """Talk for as long as somebody listens."""
    response = await spoken.stream()
    *before, again = _first_half(spoken)
    for event in before:
        await response.write(event)
    spoken.upstream.waiting.release()
    while True:
        await response.write(again)


def byte_by_byte(script: Script) -> Fault:
    """A stream whose every byte comes alone; no fault of the answer."""

    async def fault(spoken: UpstreamTurn) -> web.StreamResponse:
        response = await spoken.stream()
        for byte in b"".join(spoken.events(spoken.truthful(script))):
            await response.write(bytes([byte]))
        await response.write_eof()
        return response

    return Fault(fault)


@Fault
async def error_inside(spoken: UpstreamTurn) -> web.StreamResponse:
    """Status 200, and then an error: at once, or after the first words of a stream."""
    broken = spoken.fail(529 if spoken.got.dialect == "anthropic" else 500, "a bad day")
    assert isinstance(broken.body, bytes)
    if not spoken.got.streams:
        return web.Response(body=broken.body, content_type="application/json")
    response = await spoken.stream()
    named = b"event: error\n" if spoken.got.dialect in ("anthropic", "openai-responses") else b""
    for event in [*_first_half(spoken), named + b"data: " + broken.body + b"\n\n"]:
        await response.write(event)
    await response.write_eof()
    return response


@Fault
async def no_utf8(spoken: UpstreamTurn) -> web.StreamResponse:
    """Bytes that are no UTF-8 in the middle of the text."""
    if not spoken.got.streams:
        body = spoken.body(SAID).replace(b"trouble", b"tr\xff\xfeble")
        return web.Response(body=body, content_type="application/json")
    response = await spoken.stream()
    for event in spoken.events(spoken.truthful(SAID)):
        await response.write(event.replace(b"trouble", b"tr\xff\xfeble"))
    await response.write_eof()
    return response


def usage_of(tokens: int, script: Script = SAID) -> Fault:
    """An answer that lies about its tokens."""

    async def fault(spoken: UpstreamTurn) -> web.StreamResponse:
        return await spoken.say(replace(script, input=tokens, output=1, cached=0))

    return Fault(fault)


@Fault
async def redirected(spoken: UpstreamTurn) -> web.StreamResponse:
    """Send the caller, with its key, to somebody else."""
    del spoken
    return web.Response(status=307, headers={"location": "http://127.0.0.1:9/v1/stolen"})


@Fault
async def zipped(spoken: UpstreamTurn) -> web.StreamResponse:
    """Compress an answer although nobody asked for it."""
    script = spoken.truthful(SAID)
    streams = spoken.got.streams
    body = b"".join(spoken.events(script)) if streams else spoken.body(script)
    kind = "text/event-stream" if streams else "application/json"
    headers = {"content-type": kind, "content-encoding": "gzip"}
    return web.Response(body=gzip.compress(body), headers=headers)


@Fault
async def empty(spoken: UpstreamTurn) -> web.StreamResponse:
    """Status 200 with nothing in it."""
    if spoken.got.streams:
        response = await spoken.stream()
        await response.write_eof()
        return response
    return web.Response(content_type="application/json")


@Fault
async def web_page(spoken: UpstreamTurn) -> web.StreamResponse:
    """A page of some machine between us and the provider."""
    del spoken
    return web.Response(text="<html>Please log in</html>", content_type="text/html")


async def _half_said(spoken: UpstreamTurn) -> web.StreamResponse:
    """Say the first half of the answer, and leave the response open."""
    if spoken.got.streams:
        response = await spoken.stream()
        for event in _first_half(spoken):
            await response.write(event)
        return response
    body = spoken.body(SAID)
    response = web.StreamResponse(headers={"content-type": "application/json"})
    response.content_length = len(body)
    await response.prepare(spoken.request)
    await response.write(body[: len(body) // 2])
    return response


def _first_half(spoken: UpstreamTurn) -> list[bytes]:
    events = spoken.events(spoken.truthful(SAID))
    enough = next(n for n, event in enumerate(events) if b"the " in event) + 1
    return events[:enough]
