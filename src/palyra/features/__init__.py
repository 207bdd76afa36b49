"""The features of Palyra, one line each, in the order in which they are wired.

A line that is taken out takes the feature out: its routes, tools, commands, checks and tasks. This
module is loaded by every command: it imports nothing of the features.
"""

from typing import NamedTuple


class Feature(NamedTuple):
    """`needs` are features without which this one is left out. `first`: it is wired before the
    kernel, which uses it if it is there.
    """

    name: str
    needs: tuple[str, ...] = ()
    first: bool = False

    @property
    def module(self) -> str:
        return f"palyra.features.{self.name}"


FEATURES: tuple[Feature, ...] = (
    Feature("vault", first=True),
    # Early, so that it closes last: it signs for what the others append when they close.
    Feature("proof"),
    Feature("notices"),
    Feature("tls"),
    Feature("tasks"),
    Feature("budgets", needs=("notices",)),
    Feature("references"),
    Feature("openai_api", needs=("references", "tasks")),
    Feature("memory"),
    Feature("mcp", needs=("vault",)),
    Feature("skills"),
    Feature("web_search", needs=("vault",)),
    Feature("workers", needs=("tls",)),
    Feature("project_notes", needs=("notices",)),
    Feature("setup"),
    Feature("time_travel"),
    Feature("why"),
    Feature("security_score"),
    Feature("nodes"),
    Feature("telemetry"),
    Feature("subagents"),
    Feature("retention", needs=("tasks",)),
    Feature("backups", needs=("tasks",)),
    Feature("compaction", needs=("budgets",)),
    Feature("learning", needs=("budgets", "memory", "notices", "skills", "tasks")),
    Feature("schedules", needs=("notices", "references", "tasks", "vault")),
    Feature("channels", needs=("memory", "notices", "references", "vault")),
    Feature("health", needs=("notices",)),
    Feature("mcp_server"),
    Feature("acp"),
)
