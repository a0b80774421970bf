"""A request on its way to a model and back: upstreams, network, offline model, expansions."""
