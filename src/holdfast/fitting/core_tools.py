"""Names of the tools with which clients work with files and a shell, or search other tools.

An agent uses its file and shell tools in nearly every turn, so a search for each of them costs more
than their schemas. Names are compared as clients declare them: a tool of an MCP server has the
server's name before its own, and is never one of these.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.wire import Conversation, Message
from holdfast.wire.prefix_values import PrefixNote

_CORE = frozenset(
    # Claude Code, Codex, Gemini CLI, Qwen Code, opencode, Crush, Kimi
    "bash edit multiedit notebookedit read write glob grep ls view list patch shell exec "
    "execcommand shellcommand localshell writestdin applypatch viewimage runshellcommand readfile "
    "readmanyfiles writefile replace listdirectory searchfilecontent grepsearch strreplacefile "
    # Cline, Roo Code, Continue
    "executecommand writetofile replaceinfile searchfiles listfiles applydiff insertcontent "
    "editexistingfile createnewfile runterminalcommand "
    # Cursor, Copilot, Zed, Amp, Droid
    "runterminalcmd editfile createfile filesearch codebasesearch listdir findpath terminal "
    "runinterminal getterminaloutput replacestringinfile inserteditintofile execute create "
    # OpenHands, SWE-agent, Goose, Anthropic's own
    "executebash executeipythoncell strreplaceeditor strreplacebasededittool texteditor "
    "developershell developertexteditor".split()
)
"""Names in lower case without separators."""
_SEARCHES = frozenset({"toolsearch"})
"""How clients name a tool that searches the tools which they defer (Claude Code)."""


def is_core(name: str) -> bool:
    """Return whether a tool works with files or a shell, by its name."""
    return _plain(name) in _CORE


def searches_tools(name: str) -> bool:
    """Return whether a client searches its own deferred tools with this tool, by its name."""
    return _plain(name) in _SEARCHES


def called_tools(conversation: Conversation) -> tuple[str, ...]:
    """Return the names of all tools that the messages call, the one called last at the end."""
    return _CALLED.over(conversation)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _with_calls(names: tuple[str, ...], messages: Sequence[Message]) -> tuple[str, ...]:
    new = dict.fromkeys(call.name for m in reversed(messages) for call in reversed(m.calls))
    return (*(name for name in names if name not in new), *reversed(new)) if new else names


_CALLED: PrefixNote[tuple[str, ...]] = PrefixNote("called tools", (), _with_calls)
