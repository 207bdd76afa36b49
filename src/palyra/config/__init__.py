"""The configuration: one strict TOML file and `PALYRA_*` overrides. Read at the top of the program and nowhere below it."""

from palyra.config.providers import DEMO, OLLAMA_URL, Chosen, Detected, choose, detect
from palyra.config.reading import FILE, Loaded, Problem, Shown, check, home_folder, load, secret, show
from palyra.config.schema import Config, McpServer, Provider
from palyra.config.writing import make_private, remove_table, set_value, set_values, unset_value, write_private

__all__ = [
    "DEMO",
    "FILE",
    "OLLAMA_URL",
    "Chosen",
    "Config",
    "Detected",
    "Loaded",
    "McpServer",
    "Problem",
    "Provider",
    "Shown",
    "check",
    "choose",
    "detect",
    "home_folder",
    "load",
    "make_private",
    "remove_table",
    "secret",
    "set_value",
    "set_values",
    "show",
    "unset_value",
    "write_private",
]
