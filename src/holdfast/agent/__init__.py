"""An agent loop that always ends: tools, several targets, a guard, a journal to resume from."""

from holdfast.agent.agent import Agent
from holdfast.agent.outcome import Outcome
from holdfast.agent.targets import Target
from holdfast.agent.tools import AgentTool

__all__ = ["Agent", "AgentTool", "Outcome", "Target"]
