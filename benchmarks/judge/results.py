"""Results in one file of JSON lines, so that an interrupted run goes on where it ended."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import msgspec

from benchmarks.judge import weights
from benchmarks.judge.conditions import Outcome
from benchmarks.judge.questions import JudgeQuestion, is_right
from benchmarks.peers.environment import ROOT


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one question in one condition."""

    model: str
    """The start of the SHA-256 of the weights."""
    commit: str
    data: str
    """The start of the SHA-256 of all questions, answers and contents of the set."""
    set_name: str
    question: str
    condition: str
    type: str
    size: str
    answer: str
    right: bool
    prompt_tokens: int
    """Over all calls of the turn, hidden ones included."""
    completion_tokens: int
    calls: int
    seconds: float
    """Time of the model; prompts that share a prefix with an earlier one take less."""
    openings: int
    valid_openings: int
    empty: bool
    canned: bool
    """Whether the text of the answer was not written by the model."""
    client_call: bool
    reply: str

    @property
    def key(self) -> tuple[str, ...]:
        """What a result is valid for."""
        return (self.model, self.commit, self.data, self.question, self.condition)


def result_of(
    question: JudgeQuestion, condition: str, outcome: Outcome, commit: str, data: str
) -> Result:
    """Judge an outcome."""
    text = " ".join(outcome.text.split())
    replies = [" ".join(call.reply.split()) for call in outcome.calls]
    return Result(
        model=weights.SHA256[:12],
        commit=commit,
        data=data,
        set_name=question.set_name,
        question=question.id,
        condition=condition,
        type=question.type,
        size=question.content.size if question.content else "talk",
        answer=question.answer,
        right=is_right(outcome.text, question.answer),
        prompt_tokens=sum(call.prompt_tokens for call in outcome.calls),
        completion_tokens=sum(call.completion_tokens for call in outcome.calls),
        calls=len(outcome.calls),
        seconds=round(sum(call.seconds for call in outcome.calls), 2),
        openings=outcome.openings,
        valid_openings=outcome.valid_openings,
        empty=not text and not outcome.is_client_call,
        canned=bool(text) and not any(text in reply for reply in replies),
        client_call=outcome.is_client_call,
        reply=outcome.text[:400],
    )


def results_file() -> Path:
    """Return the file that all runs append to."""
    return weights.cache_folder() / "results.jsonl"


def load_results(path: Path) -> list[Result]:
    """Return the results in a file, the last one for each key; a torn last line is left out."""
    results: dict[tuple[str, ...], Result] = {}
    if path.exists():
        for line in path.read_bytes().splitlines():
            try:
                result = msgspec.json.decode(line, type=Result)
            except msgspec.DecodeError:
                continue
            results[result.key] = result
    return list(results.values())


def append_result(path: Path, result: Result) -> None:
    """Write one more result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as lines:
        lines.write(msgspec.json.encode(result) + b"\n")


def data_hash(questions: list[JudgeQuestion]) -> str:
    """Return a hash that changes with the questions, their answers or their contents."""
    digest = hashlib.sha256()
    for question in questions:
        digest.update(repr((question.id, question.text, question.answer)).encode())
    return digest.hexdigest()[:12]


def current_commit() -> str:
    """Return the commit of this tree, with a hash of the package's uncommitted changes."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603

    commit = git("rev-parse", "--short=10", "HEAD").strip()
    changes = git("diff", "HEAD", "--", "src")
    if not changes:
        return commit
    return f"{commit}+{hashlib.sha256(changes.encode()).hexdigest()[:6]}"
