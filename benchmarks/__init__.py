"""Benchmarks: each hot path beside a named peer, in one run, as ratios."""
