"""Holdfast: a context engine for LLM agents. Every call fits; nothing is lost."""

__version__ = "0.1.0"
