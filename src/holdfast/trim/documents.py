"""Citations of pasted documents, which trimming needs but does not make.

Trimming is pure and reads no large content. It looks citations up here; one that is not made yet
ends the pass with `UnreadDocumentsError`, and whoever trims has it made and begins again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class DocumentRequest(NamedTuple):
    """A document that is to be cited."""

    document: str
    beside: str
    """The text around it, with the user's request."""
    room: int
    """Maximum tokens of the citation."""


class UnreadDocumentsError(Exception):
    """The citation of a document is needed and not made yet. It never leaves fitting."""

    def __init__(self, requests: Sequence[DocumentRequest]) -> None:
        super().__init__()
        self.requests = tuple(requests)
        """The documents that may be needed, in this order."""


class DocumentCitations:
    """The citations that are made so far."""

    def __init__(self) -> None:
        self._made: dict[DocumentRequest, tuple[str, str]] = {}

    def __contains__(self, request: DocumentRequest) -> bool:
        return request in self._made

    def put(self, request: DocumentRequest, ref: str, text: str) -> None:
        """Keep a citation; without a ref the document may not leave."""
        self._made[request] = ref, text

    def get(self, request: DocumentRequest) -> tuple[str, str]:
        """Return the ref and the text of a citation, or raise UnreadDocumentsError."""
        if request not in self._made:
            raise UnreadDocumentsError([request])
        return self._made[request]
