"""The reference servers, and the calls of each: every tool that it lists.

Each row is a call with a user's arguments, and a failing one if that is useful. Uncalled tools are
listed with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.servers.installing import Package, from_npm, from_pypi
from tests.servers.world import IDENTITY

Call = tuple[str, dict[str, Any]]
_NUMBERS = "with recursive n(x) as (select 1 union all select x + 1 from n where x < 3000)"


@dataclass(frozen=True)
class Served:
    """A server, and its calls."""

    name: str
    package: Package
    arguments: tuple[str, ...]
    calls: tuple[Call, ...]
    probe: Call
    """A call that changes nothing: the one in which the server is killed, and the one after."""
    env: Mapping[str, str] = field(default_factory=dict)
    uncalled: Mapping[str, str] = field(default_factory=dict)
    """Tools that are not called, and why."""


def servers(world: Path, page: str) -> list[Served]:
    """All of them, over a world."""
    files, repository = str(world / "files"), str(world / "repo")
    return [
        _time(),
        _git(repository),
        _sqlite(world),
        Served(
            "fetch",
            from_pypi("mcp-server-fetch"),
            ("--ignore-robots-txt", "--allow-private-ips"),  # the page is on this machine
            (
                ("fetch", {"url": page}),
                ("fetch", {"url": page, "raw": True, "max_length": 300, "start_index": 100}),
                ("fetch", {"url": "no address"}),
            ),
            ("fetch", {"url": page, "raw": True}),
        ),
        _filesystem(files),
        _memory(world),
        _everything(),
    ]


def _time() -> Served:
    noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    return Served(
        "time",
        from_pypi("mcp-server-time"),
        ("--local-timezone", "UTC"),
        (
            ("get_current_time", {"timezone": "Europe/Berlin"}),
            ("get_current_time", {"timezone": "Nowhere/At-all"}),
            ("convert_time", noon),
        ),
        ("convert_time", noon),
    )


def _git(path: str) -> Served:
    at = {"repo_path": path}
    return Served(
        "git",
        from_pypi("mcp-server-git"),
        (),
        (
            ("git_status", at),
            ("git_log", {**at, "max_count": 30}),
            ("git_diff_unstaged", at),
            ("git_add", {**at, "files": ["0.txt"]}),
            ("git_diff_staged", at),
            ("git_diff", {**at, "target": "HEAD~20"}),
            ("git_show", {**at, "revision": "HEAD~1"}),
            ("git_show", {**at, "revision": "nothing"}),
            ("git_reset", at),
            ("git_add", {**at, "files": ["0.txt"]}),
            ("git_commit", {**at, "message": "Change 0.txt"}),
            ("git_create_branch", {**at, "branch_name": "side"}),
            ("git_checkout", {**at, "branch_name": "side"}),
            ("git_branch", {**at, "branch_type": "local"}),
        ),
        ("git_branch", {**at, "branch_type": "local"}),
        env=IDENTITY,
    )


def _sqlite(world: Path) -> Served:
    def query(tool: str, text: str) -> Call:
        return tool, {"query": text}

    return Served(
        "sqlite",
        from_pypi("mcp-server-sqlite", "mcp<2"),  # it does not start with the SDK 2.x
        ("--db-path", str(world / "t.db")),
        (
            ("list_tables", {}),
            query("create_table", "create table t(a int, b text)"),
            query("write_query", f"{_NUMBERS} insert into t select x, 'row ' || x from n"),
            query("read_query", "select * from t limit 3"),
            query("read_query", "select * from t"),
            query("read_query", "nonsense"),
            ("describe_table", {"table_name": "t"}),
            ("append_insight", {"insight": "There are three thousand rows."}),
        ),
        ("list_tables", {}),
    )


def _filesystem(files: str) -> Served:
    new = f"{files}/new.txt"
    return Served(
        "filesystem",
        from_npm("mcp-server-filesystem", "@modelcontextprotocol/server-filesystem"),
        (files,),
        (
            ("read_text_file", {"path": f"{files}/small.json"}),
            ("read_text_file", {"path": f"{files}/big.log"}),
            ("read_text_file", {"path": f"{files}/big.log", "tail": 2}),
            ("read_text_file", {"path": "/etc/hostname"}),
            ("read_file", {"path": f"{files}/small.json"}),
            ("read_media_file", {"path": f"{files}/point.png"}),
            ("read_multiple_files", {"paths": [f"{files}/small.json", f"{files}/big.log"]}),
            ("list_directory", {"path": files}),
            ("list_directory_with_sizes", {"path": files}),
            ("directory_tree", {"path": files}),
            ("search_files", {"path": files, "pattern": "*.log"}),
            ("list_allowed_directories", {}),
            ("write_file", {"path": new, "content": "hello\n"}),
            ("edit_file", {"path": new, "edits": [{"oldText": "hello", "newText": "bye"}]}),
            ("get_file_info", {"path": new}),
            ("create_directory", {"path": f"{files}/sub"}),
            ("move_file", {"source": new, "destination": f"{files}/sub/new.txt"}),
        ),
        ("list_directory", {"path": files}),
    )


def _memory(world: Path) -> Served:
    ann = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
    relation = {"from": "Ann", "to": "Ann", "relationType": "is"}
    return Served(
        "memory",
        from_npm("mcp-server-memory", "@modelcontextprotocol/server-memory"),
        (),
        (
            ("create_entities", {"entities": [ann]}),
            ("create_relations", {"relations": [relation]}),
            ("add_observations", {"observations": [{"entityName": "Ann", "contents": ["runs"]}]}),
            ("read_graph", {}),
            ("search_nodes", {"query": "tea"}),
            ("open_nodes", {"names": ["Ann"]}),
            (
                "delete_observations",
                {"deletions": [{"entityName": "Ann", "observations": ["runs"]}]},
            ),
            ("delete_relations", {"relations": [relation]}),
            ("delete_entities", {"entityNames": ["Ann"]}),
        ),
        ("read_graph", {}),
        env={"MEMORY_FILE_PATH": str(world / "memory.json")},
    )


_SHOWN: tuple[Call, ...] = (
    ("echo", {"message": "hi"}),
    ("get-sum", {"a": 1, "b": 2}),
    ("get-sum", {"a": "x"}),
    ("get-tiny-image", {}),
    ("get-structured-content", {"location": "New York"}),
    ("get-annotated-message", {"messageType": "error", "includeImage": True}),
    ("get-resource-links", {"count": 3}),
    ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
    ("trigger-long-running-operation", {"duration": 1, "steps": 2}),
)
EVERYTHING = from_npm("mcp-server-everything", "@modelcontextprotocol/server-everything")


def _everything() -> Served:
    packed = {"name": "a.gz", "data": "data:text/plain,hi", "outputType": "resource"}
    return Served(
        "everything",
        EVERYTHING,
        ("stdio",),
        (
            *_SHOWN,
            ("get-env", {}),
            ("gzip-file-as-resource", packed),
            ("get-roots-list", {}),
            ("trigger-sampling-request", {"prompt": "What is the tide?", "maxTokens": 20}),
            ("trigger-elicitation-request", {}),
            ("trigger-url-elicitation", {"url": "https://example.com/form"}),
            ("toggle-simulated-logging", {}),
            ("toggle-subscriber-updates", {}),
        ),
        ("echo", {"message": "still here"}),
        uncalled={"simulate-research-query": "it needs tasks, which the SDK 2.x has not"},
    )


def over_http(transport: str) -> Served:
    """`everything` as a server at an address."""
    return Served(
        f"everything-{transport}",
        EVERYTHING,
        ("streamableHttp" if transport == "http" else "sse",),
        _SHOWN,
        ("echo", {"message": "still here"}),
    )
