"""An agent's loop that ends in time: tools, several targets, a guard, and a journal to go on from.

tools · outcome · outputs · telemetry · journal → reporting · transcript · targets → bounds →
asking · calling → agent, each using only what stands before it.
"""

from holdfast.agent.agent import Agent
from holdfast.agent.outcome import Outcome
from holdfast.agent.targets import Target
from holdfast.agent.tools import Tool

__all__ = ["Agent", "Outcome", "Target", "Tool"]
