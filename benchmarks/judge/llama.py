"""llama.cpp's own server with the judge's model: `python llama.py WEIGHTS PORT THREADS`.

Runs in the environment of xllamacpp (`benchmarks/peers/environment.py`) and prints its address.
It ends when its standard input is closed, so that it cannot outlive the process that started it.
"""

from __future__ import annotations

import sys

import xllamacpp

WINDOW = 16_384


def main(weights: str, port: str, threads: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.n_ctx, params.n_parallel, params.port = WINDOW, 1, int(port)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
    params.cache_ram_mib = 2_048  # prefixes of earlier prompts, which are not read again
    params.use_jinja, params.ctx_shift = True, False
    # This model writes calls into code fences, which llama.cpp's parser would not recognise.
    params.force_pure_content_parser = True
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main(*sys.argv[1:])
