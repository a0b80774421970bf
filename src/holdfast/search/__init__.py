"""Search text by words and by meaning: terms, stems, BM25, int8 vectors, fusion and top-k.

The package is pure: it knows texts, numbers and arrays, but no store, model or conversation.
Weights tuned for one kind of content are arguments here.
"""
