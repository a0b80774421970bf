"""The page that proves that nothing was lost.

If a request can be rebuilt from the sent request, the edits and the store, with the SHA-256 of the
client's request, nothing of it is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.html import Html, a, h2, p, section, strong
from holdfast.surfaces.proxy.dashboard.layout import (
    page,
    remark,
    session_link,
    size,
    table,
    turn_link,
)


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """The result of rebuilding a request."""

    session: str
    title: str = ""
    number: int
    size: int = 0
    """Bytes of the request that was rebuilt."""
    sha256: str = ""
    """The hash of the rebuilt bytes, equal to that of the client's request; empty if the rebuild
    failed."""
    why: str = ""
    """Why it could not."""
    tenant: str = ""
    """Whose it is; empty if the page is about one tenant."""


def lost_page(proofs: Sequence[Proof], damaged: int) -> str:
    """The proof over the sessions last used."""
    rows = [
        (
            session_link(proof.session, proof.title, proof.tenant),
            turn_link(proof.session, proof.number, proof.tenant),
            "byte for byte" if proof.sha256 else f"not rebuilt: {proof.why}",
            size(proof.size) if proof.sha256 else "",
            proof.sha256[:16],
        )
        for proof in proofs
    ]
    columns = ("Session", "Request", "Rebuilt", "Size", "SHA-256")
    return page(
        "What was lost",
        proof_panel(proofs),
        p(strong(f"{damaged:,} originals are damaged: "), "`holdfast store verify` names them.",
          class_="notice") if damaged else None,
        remark("Each request below was just rebuilt from what the model was sent, the edits and "
               "the store, and compared with the SHA-256 of what the client had sent."),
        section(h2("The last request of each session"),
                table("The sessions last used", columns, rows, words=(1, 2, 4)))
        if rows else p("Nothing was sent yet, so nothing can be lost."),
        here="Lost",
    )  # fmt: skip


def proof_panel(proofs: Sequence[Proof]) -> Html:
    """Return the result of the proofs, in a sentence."""
    gaps = [proof for proof in proofs if not proof.sha256]
    if not gaps:
        number = len(proofs)
        what = (
            "The last request was"
            if number == 1
            else f"The last requests of {number:,} sessions were"
        )
        return section(
            h2("What was lost?"),
            p(strong("Nothing. "), f"{what} rebuilt just now, byte for byte as the client sent it.",
              class_="proof"),
        )  # fmt: skip
    return section(
        h2("What was lost?"),
        p(strong(f"{len(gaps):,} of {len(proofs):,} cannot be rebuilt. "), gaps[0].why,
          class_="notice"),
    )  # fmt: skip


def turn_proof(proof: Proof) -> Html:
    """The same of one turn, with the request to be had."""
    if not proof.sha256:
        return proof_panel([proof])
    return section(
        h2("What was lost?"),
        p(strong("Nothing. "),
          f"This request was rebuilt just now from what was sent: {size(proof.size)}, byte for "
          "byte as the client sent it. ",
          a("Download it", href=links.asked(proof.session, proof.number), download=True),
          class_="proof"),
    )  # fmt: skip
