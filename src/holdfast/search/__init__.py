"""Search text by words and by meaning: tokens, stems, BM25, int8 vectors, fusion and top-k.

stems → words → query, bm25 → passages; arrays, bm25 → postings, vectors, fusion; top. Pure, and
below every package that searches: it knows texts, numbers and arrays, no store, model or
conversation. Weights that were tuned for one kind of content stay with it and are arguments here.
"""
