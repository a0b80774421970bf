"""Vocabularies: ordinary text, remembered within bounds, the same from every thread."""

from __future__ import annotations

import os
import threading
from base64 import b64encode
from functools import cache
from pathlib import Path
from random import Random

import pytest
import splintr
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import TokenCountingError
from holdfast.tokens import vocabulary as vocabulary_module
from holdfast.tokens.vocabulary import PIECE_CHARACTERS, CountCache, count_ordinary, pieces

VOCABULARIES = ["o200k_base", "cl100k_base", "gemma3", "llama3", "qwen3", "mistral_v3"]


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("special", ["<|endoftext|>", "<|im_start|>", "<end_of_turn>", "[INST]"])
def test_a_special_token_in_a_text_costs_what_its_letters_cost(
    vocabulary: str, special: str
) -> None:
    assert count_ordinary(vocabulary, special) > 1


@pytest.mark.parametrize(
    ("text", "tokens"), [("hello world", 2), ("", 0), ("tiktoken is great!", 6), ("\n\n\n", 1)]
)
def test_known_texts_have_their_known_counts(text: str, tokens: int) -> None:
    assert CountCache().count("o200k_base", text) == tokens


@given(st.text(max_size=300))
def test_memory_gives_what_counting_gives(text: str) -> None:
    memory = CountCache()
    for vocabulary in ("o200k_base", "llama2"):
        first = memory.count(vocabulary, text)
        assert (
            memory.count(vocabulary, text) == first == count_ordinary(vocabulary, text) or not text
        )
        assert first <= 2 * len(text.encode()) + 1


TEXTS = [
    "The quick  brown fox.\n" * 50,
    '{"a":[1,2,{"b":"cé"}]}' * 40,
    "x" * 500,
    "\t a\n\n  b 漢字 😀",
]


@pytest.mark.parametrize("text", TEXTS)
def test_counting_by_words_is_as_counting_whole(text: str) -> None:
    whole = len(splintr.Tokenizer.from_pretrained("gemma3").encode_ordinary(text))
    assert count_ordinary("gemma3", text) == whole
    whole = len(splintr.Tokenizer.from_pretrained("llama2").encode_ordinary(text))
    assert abs(count_ordinary("llama2", text) - whole) <= max(2, 0.08 * whole)


def test_a_lone_surrogate_is_counted_as_its_replacement() -> None:
    assert count_ordinary("o200k_base", "half \ud83d") == count_ordinary("o200k_base", "half ?")


def test_an_unknown_vocabulary_is_a_typed_error() -> None:
    with pytest.raises(TokenCountingError, match="no vocabulary"):
        count_ordinary("klingon", "nuqneH")


def test_memory_is_bounded_and_keeps_what_is_used() -> None:
    memory = CountCache(size=100)
    for number in range(1000):
        memory.count("o200k_base", f"text {number}")
        memory.count("o200k_base", "used all the time")
    assert len(memory) <= 100
    memory.forget()
    assert len(memory) == 0


def test_threads_share_a_memory_without_wrong_counts() -> None:
    memory = CountCache(size=64)
    expected = {f"word {n} " * (n % 7 + 1): 0 for n in range(200)}
    for text in expected:
        expected[text] = count_ordinary("o200k_base", text)
    wrong: list[str] = []

    def work() -> None:
        for _ in range(5):
            wrong.extend(t for t, n in expected.items() if memory.count("o200k_base", t) != n)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def _tiktoken(name: str) -> object:
    tiktoken = pytest.importorskip("tiktoken", reason="tiktoken comes with `make bench`")
    litellm = pytest.importorskip("litellm", reason="litellm brings tiktoken's vocabularies")
    folder = Path(litellm.__file__).parent / "litellm_core_utils" / "tokenizers"
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))
    return tiktoken.get_encoding(name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_fuzzed_text_counts_as_in_tiktoken(name: str) -> None:
    encoding = _tiktoken(name)

    @given(st.text(max_size=200))
    def check(text: str) -> None:
        assert count_ordinary(name, text) == len(encoding.encode_ordinary(text))  # type: ignore[attr-defined]

    check()


def _base64_lines(size: int) -> str:
    """Return a generated file in base64, in lines of 60 characters as GitHub's API sends it."""
    encoded = b64encode(Random(27).randbytes(size)).decode()
    return "\n".join(encoded[at : at + 60] for at in range(0, len(encoded), 60))


LONG_TEXTS = {
    "log": "\n".join(f"2026-01-01 INFO worker {n} took {n * 7} ms" for n in range(2_000)),
    "json": ",".join(f'{{"id": {n}, "name": "row number {n}"}}' for n in range(2_000)),
    "prose": "It was the best of times, it was the worst of times; " * 2_000,
    "base64": "".join(f"{n:x}Zk+/" for n in range(20_000)),
    "base64 in a JSON string": _base64_lines(60_000).replace("\n", "\\n"),
    "base64 without line ends": _base64_lines(60_000).replace("\n", "").replace("+", ""),
    "code that is indented in base64": b64encode(
        "".join(f"{' ' * (n % 60)}call_{n};\n" for n in range(1_500)).encode()
    ).decode(),
    "Chinese": "".join(
        Random(n).choice("数据库连接失败请求超时服务器日志文件") for n in range(60_000)
    ),
    "digits": "".join(str(Random(n).randrange(10**6)) for n in range(12_000)),
    "spaces": " " * 60_000,
    "punctuation": "=-" * 30_000,
    "emoji": "👩‍💻🚀" * 15_000,
}


@pytest.mark.parametrize(
    "vocabulary",
    [
        "o200k_base",
        "cl100k_base",
        "llama3",
        "qwen3",
        "mistral_v3",
        "deepseek_v3",
        "glm4.5",
        "kimi_k2",
        "phi4",
    ],
)
@pytest.mark.parametrize("kind", LONG_TEXTS)
def test_a_long_text_counted_in_pieces_has_the_tokens_of_the_whole(
    vocabulary: str, kind: str
) -> None:
    text = LONG_TEXTS[kind]
    assert len(text) > 3 * PIECE_CHARACTERS
    whole = splintr.Tokenizer.from_pretrained(vocabulary).encode_ordinary(text)
    assert count_ordinary(vocabulary, text) == len(whole)


@given(st.text(alphabet='ab1 \n"漢\ud800', max_size=40), st.integers(1, 4_000))
def test_the_pieces_of_a_text_are_the_text_and_none_is_long(unit: str, times: int) -> None:
    text = unit * times
    parts = list(pieces(text))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= PIECE_CHARACTERS


@given(
    unit=st.text(alphabet='aB1+= \n"漢é😀', min_size=1, max_size=40),
    filler=st.integers(0, 2_000),
    times=st.integers(1, 4_000),
)
@settings(max_examples=100)
def test_a_repeated_unit_has_the_tokens_of_the_whole(unit: str, filler: int, times: int) -> None:
    text = "x" * filler + unit * times
    whole = splintr.Tokenizer.from_pretrained("o200k_base").encode_ordinary(text)
    assert count_ordinary("o200k_base", text) == len(whole)


@pytest.mark.parametrize("vocabulary", ["o200k_base", "gemma3", "llama2"])
def test_no_encoder_is_given_an_endless_word_at_once(
    vocabulary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = []

    class Watched:
        """The real encoder; it holds the interpreter for as long as one call takes."""

        def __init__(self, name: str) -> None:
            self.encoder = splintr.Tokenizer.from_pretrained(name)

        def encode_ordinary(self, text: str) -> list[int]:
            lengths.append(len(text))
            return list(self.encoder.encode_ordinary(text))

        def decode_bytes(self, tokens: list[int]) -> bytes:
            return bytes(self.encoder.decode_bytes(tokens))

    monkeypatch.setattr(vocabulary_module, "_tokenizer", cache(Watched))
    count_ordinary(vocabulary, "x" * 200_000)
    assert 0 < max(lengths) <= PIECE_CHARACTERS
