"""A client in your program: requests to any model, fitted, sent, billed and recorded.

requests · pace → transports → exchange → replies · report → client → blocking, each using only
files before it.
"""

from holdfast.client.client import Client
from holdfast.client.replies import ClientReport, Reply, ReplyPart
from holdfast.client.transports import Plugin

__all__ = ["Client", "ClientReport", "Plugin", "Reply", "ReplyPart"]
