"""Made-up results of actions that look like real ones: pages, searches, database answers."""

from __future__ import annotations

import random
from typing import Any

WORDS = (
    "quantum computing error correction qubit threshold vendor roadmap revenue investor pilot "
    "annealing fidelity gate lattice cryogenic foundry licence customer chemistry logistics "
    "finance benchmark logical physical decoherence supply chain timeline milestone enterprise "
    "cloud access simulation advantage hardware software stack compiler talent regulation"
).split()


def prose(chance: random.Random, characters: int) -> str:
    sentences = []
    length = 0
    while length < characters:
        words = chance.choices(WORDS, k=chance.randint(7, 19))
        sentence = f"{' '.join(words).capitalize()} in {chance.randint(2019, 2035)}."
        sentences.append(sentence)
        length += len(sentence) + 1
    return " ".join(sentences)


def result(name: str, value: Any, message: str = "", **others: Any) -> dict[str, Any]:
    """An action's result that gives one content, and a few small things."""
    params = [
        {"Name": "Query", "Type": "Input", "Value": "quantum computing"},
        {"Name": name, "Type": "Output", "Value": value},
        *({"Name": key, "Type": "Output", "Value": small} for key, small in others.items()),
    ]
    return {
        "success": True,
        "result": {"Params": params, "Result": {"ResultCode": "SUCCESS"}, "Message": message},
    }


def failure(error: str) -> dict[str, Any]:
    return {"success": False, "result": None, "error": error}


def page(seed: int) -> dict[str, Any]:
    """A web page of 50 to 100 KB."""
    chance = random.Random(seed)
    size = chance.randint(50_000, 95_000)
    sections: list[str] = []
    while sum(len(section) for section in sections) < size:
        title = " ".join(chance.choices(WORDS, k=4)).title()
        paragraphs = "".join(f"<p>{prose(chance, 900)}</p>\n" for _ in range(4))
        sections.append(
            f'<section class="s{len(sections)}"><h2>{title}</h2>\n{paragraphs}</section>'
        )
    body = "\n".join(sections)
    html = (
        f"<!DOCTYPE html><html><head><title>Report {seed}</title></head><body>{body}</body></html>"
    )
    return result("Content", html, URL=f"https://example.com/report/{seed}", StatusCode=200)


def search(seed: int) -> dict[str, Any]:
    """Ten hits with the maps of their pages, of some 50 KB."""
    chance = random.Random(seed)
    items = [
        {
            "title": " ".join(chance.choices(WORDS, k=6)).title(),
            "link": f"https://example.org/{seed}/{n}",
            "snippet": prose(chance, 300),
            "pagemap": {"metatags": [{f"og:{word}": prose(chance, 450)} for word in WORDS[:10]]},
        }
        for n in range(10)
    ]
    return result("Results", {"items": items, "searchInformation": {"totalResults": "48100"}})


def query(seed: int) -> dict[str, Any]:
    """A database's answer of 50 to 100 KB."""
    chance = random.Random(seed)
    rows = [
        {
            "id": 1000 * seed + n,
            "company": " ".join(chance.choices(WORDS, k=2)).title(),
            "raised": round(chance.uniform(1, 900), 2),
            "status": chance.choice(["active", "closed", "pilot"]),
            "note": prose(chance, 90),
        }
        for n in range(380)
    ]
    return result("Results", rows, RowCount=len(rows))
