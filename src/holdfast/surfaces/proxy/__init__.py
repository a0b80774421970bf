"""The proxy: point any client at it, and its calls fit.

routes → switches → upstreams → sending → expansions → telemetry → service → exchange → counting →
app → safety → gate → server, each using only what stands before it; offline answers where there is
no upstream. telemetry writes what seen gathers: metrics, logs and tracing.
"""
