"""Vocabularies: ordinary text, remembered within bounds, the same from every thread."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import splintr
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import TokenCountingError
from holdfast.tokens.vocabulary import Memory, count_ordinary

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
    assert Memory().count("o200k_base", text) == tokens


@given(st.text(max_size=300))
def test_memory_gives_what_counting_gives(text: str) -> None:
    memory = Memory()
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
    memory = Memory(size=100)
    for number in range(1000):
        memory.count("o200k_base", f"text {number}")
        memory.count("o200k_base", "used all the time")
    assert len(memory) <= 100
    memory.forget()
    assert len(memory) == 0


def test_threads_share_a_memory_without_wrong_counts() -> None:
    memory = Memory(size=64)
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
