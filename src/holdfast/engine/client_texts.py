"""Texts that clients write by themselves: set-up texts, and the prompts of side requests.

client_texts: before side_requests and titles. Data only: each row names the client and the version
in which the text was seen, so that a row can be checked again when the client changes. Forks share
the texts of the client they come from, so a row counts for every client unless it names one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Where = Literal["system", "first", "last"]
"""A system block, the first text of the user, or the last text of the last message."""


class SideText(NamedTuple):
    """How the order of a side request begins."""

    purpose: str
    where: Where
    start: str
    client: str
    version: str
    only: bool = False
    """Whether it counts only for this client: people write such words too."""


SIDE_TEXTS: tuple[SideText, ...] = (
    # Claude Code, from recorded requests and the texts in its program.
    SideText("title", "system", "Generate a concise, sentence-case title",
             "claude-code", "2.1.197"),
    SideText("title", "last", "Generate a short kebab-case name", "claude-code", "2.1.197"),
    SideText("title", "system", "Summarize this coding conversation in under 50 characters",
             "claude-code", "2.0"),
    SideText("title", "first", "Please write a 5-10 word title for the following conversation",
             "claude-code", "1.0"),
    SideText("topic", "system", "Analyze if this message indicates a new conversation topic",
             "claude-code", "1.0"),
    SideText("compaction", "last", "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.",
             "claude-code", "2.1.197"),
    SideText("compaction", "last",
             "Your task is to create a detailed summary of the conversation so far",
             "claude-code", "1.0"),
    SideText("suggestion", "last", "[SUGGESTION MODE:", "claude-code", "2.1.197"),
    SideText("side question", "last",
             "<system-reminder>This is a side question from the user.", "claude-code", "2.1.197"),
    SideText("summary", "last", "The user stepped away and is coming back. Recap",
             "claude-code", "2.1.197"),
    SideText("summary", "last", "Describe your most recent action in 3-5 words",
             "claude-code", "2.1.197"),
    SideText("summary", "system", "Write a short summary label describing what these tool calls",
             "claude-code", "2.1.197"),
    SideText("memory", "last", "You are now acting as the memory extraction subagent.",
             "claude-code", "2.1.197"),
    SideText("check", "system", "Your task is to process Bash commands that an AI coding agent",
             "claude-code", "2.1.197"),
    SideText("check", "system", "You are evaluating a hook condition in Claude Code",
             "claude-code", "2.1.197"),
    SideText("check", "system", "You are evaluating a stop-condition hook in Claude Code",
             "claude-code", "2.1.197"),
    SideText("check", "system", "You are a security monitor for autonomous AI coding agents",
             "claude-code", "2.1.197"),
    SideText("web search", "system", "You are an assistant for performing a web search tool use",
             "claude-code", "2.1.197"),
    SideText("web page", "first", "Web page content:", "claude-code", "2.1.197", only=True),
    SideText("warm-up", "first", "Warmup", "claude-code", "2.0", only=True),
    # opencode
    SideText("title", "system", "You are a title generator. You output ONLY a thread title.",
             "opencode", "1.18.33"),
    SideText("compaction", "system", "You are a context summarization agent.",
             "opencode", "1.18.33"),
    SideText("compaction", "system",
             "You are a helpful AI assistant tasked with summarizing conversations",
             "opencode", "1.0"),
    SideText("summary", "system", "Summarize what was done in this conversation. Write like a pull",
             "opencode", "1.18.33"),
    # Codex
    SideText("compaction", "last", "You are performing a CONTEXT CHECKPOINT COMPACTION.",
             "codex", "0.169.0"),
    SideText("check", "first", "The following is the Codex agent history whose request action you",
             "codex", "0.142"),
    # Gemini CLI and its forks, such as Qwen Code
    SideText("compaction", "system", "You are a specialized system component responsible for "
             "distilling chat history", "gemini-cli", "0.61.0"),
    SideText("compaction", "system", "You are the component that summarizes internal chat history",
             "gemini-cli", "0.1"),
    SideText("routing", "system", "You are a specialized Task Routing AI.",
             "gemini-cli", "0.61.0"),
    SideText("check", "system", "You are an expert code-editing assistant",
             "gemini-cli", "0.61.0"),
    SideText("check", "system", "You are a sophisticated AI diagnostic agent specializing in "
             "identifying when a conversational AI", "gemini-cli", "0.8"),
    SideText("check", "last", "Analyze *only* the content and structure of your immediately "
             "preceding response", "gemini-cli", "0.61.0"),
    SideText("summary", "last", "Summarize the following tool output to be a maximum of",
             "gemini-cli", "0.61.0"),
    SideText("title", "last", "Summarize the user's primary intent or goal in this conversation",
             "gemini-cli", "0.61.0"),
    SideText("suggestion", "last", "You are a professional prompt engineering assistant. Complete "
             "the user's partial prompt", "gemini-cli", "0.61.0"),
    # aider
    SideText("commit message", "system", "You are an expert software engineer that generates "
             "concise, one-line Git commit messages", "aider", "0.86.2"),
    SideText("summary", "system", "*Briefly* summarize this partial conversation about programming",
             "aider", "0.86.2"),
    # Open WebUI
    SideText("title", "last", "### Task:\nGenerate a concise, 3-5 word title", "open-webui", "0.6"),
    SideText("topic", "last", "### Task:\nGenerate 1-3 broad tags categorizing",
             "open-webui", "0.6"),
    SideText("suggestion", "last", "### Task:\nSuggest 3-5 relevant follow-up questions",
             "open-webui", "0.6"),
)  # fmt: skip

SIDE_ITEMS = {"compaction_trigger": "compaction"}
"""Types of last items that are orders: Codex 0.169.0, remote compaction."""

ONE_TOKEN = {"claude-code": {"quota": "quota", "": "count"}}
"""The purpose of a request for a single token, by client and text; seen in Claude Code 2.1.197,
which asks for one token at its start to learn its limits, and in `/context` where nobody counts for
it."""


class SetupText(NamedTuple):
    """How a text begins that a client writes in the user's place."""

    start: str
    client: str
    version: str


SETUP_TEXTS: tuple[SetupText, ...] = (
    SetupText("Caveat: The messages below were generated by the user while running local",
              "claude-code", "2.0"),
    SetupText("[Request interrupted by user", "claude-code", "2.1.217"),
    SetupText("[Image #", "claude-code", "2.1.217"),
    SetupText("[Image source:", "claude-code", "2.1.217"),
    SetupText("[Image: source:", "claude-code", "2.1.217"),
    SetupText("Base directory for this skill:", "claude-code", "2.1.217"),
    SetupText("Read the output file to retrieve the result:", "claude-code", "2.1.42"),
    SetupText("This session is being continued from", "claude-code", "2.1.197"),
    SetupText("Continue from where you left off.", "claude-code", "2.1.197"),
    SetupText("# AGENTS.md instructions", "codex", "0.169.0"),
    SetupText("Another language model started to solve this problem and produced a summary",
              "codex", "0.169.0"),
    SetupText("What did we do so far?", "opencode", "1.18.33"),
    SetupText("Continue if you have next steps, or stop and ask", "opencode", "1.18.33"),
    SetupText("The following tool was executed by the user", "opencode", "1.18.33"),
    SetupText("Generate a title for this conversation:", "opencode", "1.18.33"),
    SetupText("This is the Gemini CLI. We are setting up the context for our chat.",
              "gemini-cli", "0.61.0"),
    SetupText("This is the Qwen Code. We are setting up the context for our chat.",
              "qwen-code", "0.14"),
    SetupText("Here are summaries of some files present in my git repo", "aider", "0.86.2"),
    SetupText("I am working with you on code in a git repository.", "aider", "0.86.2"),
    SetupText("I have *added these files to the chat*", "aider", "0.86.2"),
    SetupText("Here are some READ ONLY files, provided for your reference.", "aider", "0.86.2"),
    SetupText("I am not sharing any files that you can edit yet.", "aider", "0.86.2"),
)  # fmt: skip

EXAMPLES_END = b"I switched to a new code base. Please don't consider the above files"
"""Bytes of the message that ends a client's built-in examples: aider 0.86.2."""

SETUP_TAGS = frozenset(
    # Claude Code 2.0 to 2.1.217
    "system-reminder local-command-caveat local-command-stdout local-command-stderr "
    "command-name command-message command-args "
    "bash-input bash-stdout bash-stderr ide_opened_file ide_selection ide_diagnostics "
    "task-notification "
    # Codex 0.142 to 0.169
    "environment_context user_instructions INSTRUCTIONS permissions skills_instructions skill "
    "turn_aborted subagent_notification user_shell_command image_resize_notice "
    # Gemini CLI 0.61
    "session_context state_snapshot "
    # Cline and Roo Code 3, VS Code's Copilot Chat
    "environment_details editorContext reminderInstructions repoContext workspace_info".split()
)
"""XML-like tags around texts that a client adds; the person's text comes after or beside them."""

USER_TAGS = frozenset(
    "user_query userRequest user_request user_message user_prompt task question query".split()
)
"""Tags around the person's text: Cursor, VS Code's Copilot Chat, Cline, Roo Code."""


class CommandTemplate(NamedTuple):
    """A text that a client sends for one of its commands."""

    start: str
    command: str
    argument: str
    """The tag before the arguments of the command."""
    client: str
    version: str


COMMAND_TEMPLATES: tuple[CommandTemplate, ...] = (
    CommandTemplate("You are a code reviewer. Your job is to review code changes and provide "
                    "actionable feedback.", "/review", "\nInput: ", "opencode", "1.18.33"),
)  # fmt: skip
