"""A client in your program: requests to any model, made to fit, sent, reconciled and recorded.

requests · pace → transports → exchange → replies · report → client → blocking, each using only what
stands before it.
"""

from holdfast.client.client import Client
from holdfast.client.replies import ClientReport, Part, Reply
from holdfast.client.transports import Plugin

__all__ = ["Client", "ClientReport", "Part", "Plugin", "Reply"]
