"""State that every command shares: the home folder, how to print, and the way to the daemon. Made
from the options, once.
"""

import os
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from palyra.cli.output import Output

if TYPE_CHECKING:
    from palyra.cli.settings_file import SettingsFile
    from palyra.client import Client


@dataclass
class CliState:
    home_argument: str | None = None
    as_json: bool = False
    no_color: bool = False
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    @cached_property
    def home(self) -> Path:
        from palyra.client.discovery import home_folder

        return home_folder(self.home_argument, self.env)

    @cached_property
    def settings(self) -> "SettingsFile":
        # Who serves knows the settings: a command that needs them loads it, and no other does.
        commands = import_module("palyra.serve.commands.settings_file")
        found: SettingsFile = commands.HomeSettings(self.home, self.env)
        return found

    @cached_property
    def out(self) -> Output:
        return Output(as_json=self.as_json, color=not (self.no_color or self.env.get("NO_COLOR")))

    @cached_property
    def api(self) -> "Client":
        from palyra.client import discovery
        from palyra.client.http import Api
        from palyra.client.sync import Client

        return Client.over(Api(lambda: discovery.discover(self.home, self.env)))

    @property
    def log_path(self) -> Path:
        return self.home / "logs" / "cli.log"
