"""Any provider that Pydantic AI knows, with the keys that its own variables hold.

pydantic_models: after protocol. The package is optional, and imported when a model is first asked:
it takes two seconds and 68 MB. This is the only module that may import it.
"""

from __future__ import annotations

import asyncio

from holdfast.errors import (
    ModelAnswerError,
    ModelError,
    ModelRateLimitedError,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from holdfast.extras import how_to_install
from holdfast.models.protocol import Completion


class PydanticModel:
    """A model of one of Pydantic AI's providers."""

    def __init__(self, name: str, model: str, *, window: int, timeout: float) -> None:
        self.name = name
        self.window = window
        self._model = model
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"<PydanticModel {self.name}>"

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
        """Ask once; see `CompletionModel`."""
        try:
            # Two seconds of imports would hold the event loop.
            await asyncio.to_thread(__import__, "pydantic_ai.direct")
        except ImportError:
            raise ModelRefusedError(
                "Pydantic AI is not installed", where=self.name, fix=how_to_install("models")
            ) from None
        from pydantic_ai import exceptions, messages  # noqa: PLC0415 - optional, and slow
        from pydantic_ai.direct import model_request  # noqa: PLC0415

        request = messages.ModelRequest.user_text_prompt(prompt, instructions=system or None)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await model_request(
                    self._model, [request], model_settings={"max_tokens": max_tokens}
                )
        except TimeoutError:
            raise ModelTimeoutError(
                f"no answer within {self._timeout:g} seconds",
                where=self.name,
                fix="Raise summarization_timeout, or name a faster provider.",
            ) from None
        except exceptions.ModelHTTPError as error:
            raise _of_status(error.status_code, self.name) from None
        except exceptions.ContentFilterError:
            raise ModelRefusedError("the model declined to answer", where=self.name) from None
        except (exceptions.UserError, ImportError, ValueError):
            # Its text may contain keys: a missing key is the usual case.
            raise ModelRefusedError(
                "Pydantic AI cannot ask this provider",
                where=self.name,
                fix="Set the provider's key in its own variable, and install its extra.",
            ) from None
        except Exception as error:  # noqa: BLE001 - vendors' clients raise what they like
            raise ModelUnavailableError(
                f"the provider cannot be asked ({type(error).__name__})", where=self.name
            ) from None
        text = answer.text
        if text is None:
            raise ModelAnswerError("the answer holds no text", where=self.name)
        return Completion(
            text=text,
            input_tokens=answer.usage.input_tokens,
            output_tokens=answer.usage.output_tokens,
            model=answer.model_name or "",
            cut=answer.finish_reason == "length",
        )


def _of_status(status: int, name: str) -> ModelError:
    what = f"the provider answered with status {status}"
    if status == 429:
        return ModelRateLimitedError(what, where=name)
    if status >= 500 or status == 408:
        return ModelUnavailableError(what, where=name)
    return ModelRefusedError(what, where=name, fix="Check the key and the name of the model.")
