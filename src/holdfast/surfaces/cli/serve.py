"""serve: the command that runs the proxy and prints how to use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.settings import Settings
from holdfast.store.postgres.address import without_password

from ._context import STORE, CommandContext, shared_options
from ._output import remark
from ._warnings import plain_warnings

if TYPE_CHECKING:
    from holdfast.surfaces.proxy.server import ProxyAddresses

_CURL = """\
curl {url}/v1/chat/completions -H 'content-type: application/json' \\{token}
       -d '{{"model": "gpt-4o", "messages": [{{"role": "user", "content": "Hello?"}}]}}'"""


def _upstream(flag: str, whose: str) -> Any:
    return typer.Option(flag, metavar="URL", help=f"Send {whose} requests to this address.")


@shared_options(*STORE)
def serve(
    context: CommandContext,
    host: Annotated[
        str | None,
        typer.Option("--host", help="Address to listen on; any but 127.0.0.1 needs a token."),
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65_535, help="Port; 0 picks a free one.")
    ] = None,
    openai: Annotated[str | None, _upstream("--openai", "OpenAI's")] = None,
    anthropic: Annotated[str | None, _upstream("--anthropic", "Anthropic's")] = None,
    gemini: Annotated[str | None, _upstream("--gemini", "Gemini's")] = None,
    bedrock: Annotated[str | None, _upstream("--bedrock", "Bedrock Converse")] = None,
    cohere: Annotated[str | None, _upstream("--cohere", "Cohere's")] = None,
    offline: Annotated[
        bool | None,
        typer.Option("--offline", help="Answer with the offline model where no upstream is set."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, max=64, help="Number of processes; one per core is a good choice."
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=1,
            help="Maximum input tokens of a request; the default is the limit of the model.",
        ),
    ] = None,
) -> None:
    """Run the proxy; clients only change their base URL.

    Long tool results are stored and cited. The model opens the parts it needs, which the client
    does not see. Without any upstream the offline model answers; it needs no key and only quotes.
    With upstreams, requests for other providers are refused unless --offline is given. API keys
    come from the client or from the settings.

    \b
    Try it:
      holdfast serve
      curl http://127.0.0.1:8787/v1/chat/completions -H 'content-type: application/json' \\
        -d '{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello?"}]}'

    \b
    With upstreams:
      holdfast serve --openai https://api.openai.com --anthropic https://api.anthropic.com
      holdfast serve --openai http://localhost:11434 --limit 8000      (Ollama, vLLM, …)
      holdfast serve --openai https://api.openai.com --workers 4       (on 4 cores)

    \b
    Base URLs of clients:
      OpenAI       http://127.0.0.1:8787/v1     OPENAI_BASE_URL
      Anthropic    http://127.0.0.1:8787        ANTHROPIC_BASE_URL
      Gemini       http://127.0.0.1:8787        GOOGLE_GEMINI_BASE_URL
      Bedrock      http://127.0.0.1:8787        AWS_ENDPOINT_URL_BEDROCK_RUNTIME
      Cohere       http://127.0.0.1:8787        CO_API_URL
    """
    from holdfast.surfaces.proxy import crew, logs  # noqa: PLC0415 - other commands start faster

    settings = context.override(
        serve_host=host,
        serve_port=port,
        upstreams__openai__url=openai,
        upstreams__anthropic__url=anthropic,
        upstreams__gemini__url=gemini,
        upstreams__bedrock__url=bedrock,
        upstreams__cohere__url=cohere,
        serve_offline=offline,
        serve_workers=workers,
        request_limit=limit,
    ).settings
    logs.configure(settings.log_format, debug=settings.context_debug)
    with plain_warnings(logs.warn):
        crew.serve(settings, started=lambda started: _greet(settings, started))


def _greet(settings: Settings, started: ProxyAddresses) -> None:
    url = started.url
    remark(f"Holdfast listens on {url} (press Ctrl-C to stop)")
    for family in ("openai", "anthropic", "gemini"):
        missing = f"no upstream: give --{family} URL, or --offline"
        offline = "the offline model, which only quotes"
        to = started.upstreams.get(family, offline if started.answers_offline else missing)
        remark(f"  {family:<9} → {to}")
    for name, upstream in started.upstreams.items():
        if name not in ("openai", "anthropic", "gemini"):
            remark(f"  {name:<9} → {upstream}")
    if settings.serve_workers > 1:
        remark(f"  workers   → {settings.serve_workers} processes that share the store")
    remark(f"  store     → {without_password(settings.store_url) or _default_store(settings)}")
    remark(f"  dashboard → {url}/")
    remark("Run the line for your client in its shell:")
    remark(f"  export OPENAI_BASE_URL={url}/v1")
    remark(f"  export ANTHROPIC_BASE_URL={url}")
    remark(f"  export GOOGLE_GEMINI_BASE_URL={url}")
    remark("Or try it:")
    # The token itself would stay in the terminal and in the logs of a service manager.
    token = (
        '\n       -H "x-holdfast-token: $HOLDFAST_SERVE_TOKEN" \\' if settings.serve_token else ""
    )
    for line in _CURL.format(url=url, token=token).splitlines():
        remark(f"  {line}")


def _default_store(settings: Settings) -> str:
    folder = settings.data_folder
    return str(folder / "holdfast.db") if folder is not None else "nowhere"
