"""The proxy: point any client at it, and its requests fit.

routes → switches → upstreams → telemetry → service → exchange → counting → app → safety → gate →
server; each uses only files before it. The offline model answers where there is no upstream.
telemetry writes metrics, logs and traces from the facts that seen collects.
"""
