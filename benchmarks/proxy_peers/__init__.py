"""Proxies side by side: one fake provider, one client, one process for each."""
