"""The configuration: one strict TOML file and `PALYRA_*` overrides. Read at the top of the program
and nowhere below it.
"""

from palyra.client.discovery import home_folder
from palyra.serve.config.edit import remove_table, set_value, set_values, unset_value
from palyra.serve.config.providers import DEMO, OLLAMA_URL, ChosenModels, Detected, choose, detect
from palyra.serve.config.reader import (
    FILE,
    ConfigProblem,
    Loaded,
    ShownSetting,
    check,
    load,
    secret,
    show,
)
from palyra.serve.config.schema import Config
from palyra.serve.config.sections import BUILT_IN, McpServer, Provider
from palyra.system.private_files import make_private, write_private

__all__ = [
    "BUILT_IN",
    "DEMO",
    "FILE",
    "OLLAMA_URL",
    "ChosenModels",
    "Config",
    "ConfigProblem",
    "Detected",
    "Loaded",
    "McpServer",
    "Provider",
    "ShownSetting",
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
