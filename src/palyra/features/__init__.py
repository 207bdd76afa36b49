"""The features of Palyra, one line each, in the order in which they are wired.

A line that is taken out takes the feature out: its routes, tools, commands, checks and tasks. This
module is loaded by every command: it imports nothing of the features.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Feature(NamedTuple):
    """`commands` maps a command's name to its place in the feature's folder and its help line."""

    name: str
    commands: Mapping[str, tuple[str, str]] = {}

    @property
    def module(self) -> str:
        return f"palyra.features.{self.name}"


FEATURES: tuple[Feature, ...] = (
    Feature("notices"),
    Feature("vault"),
    Feature("tls"),
    Feature("budgets"),
    Feature("openai_api"),
    Feature("workers"),
    Feature("references"),
    Feature("memory"),
    Feature("skills"),
    Feature("project_notes"),
    Feature("mcp"),
    Feature("setup"),
    Feature("time_travel"),
    Feature("subagents"),
    Feature("retention"),
    Feature("compaction"),
    Feature("tasks"),
    Feature("learning"),
    Feature("schedules"),
    Feature("channels"),
    Feature("health"),
    Feature("mcp_server"),
    Feature("acp"),
)
