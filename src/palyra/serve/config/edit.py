"""Changes settings in the file, in place and all or nothing: what would not load is not written.
Files are 0600, folders 0700.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from palyra.core.errors import ConfigInvalid, InvalidInput, NotFound
from palyra.serve.config import reader
from palyra.system.private_files import write_private


def set_value(home: Path, key: str, value: Any) -> None:
    """Set one key, such as `server.http_port`. Text is read as the setting's type; comments and
    order stay.
    """
    set_values(home, {key: value})


def set_values(home: Path, changes: Mapping[str, Any]) -> None:
    """Set several keys together, where one alone would not be valid."""
    from palyra.serve.config import toml_text

    path = home / reader.FILE
    text = _read(path)
    for key, value in changes.items():
        where, setting = reader.parse_key(key)
        try:
            good = (
                reader.from_text(setting, value)
                if isinstance(value, str)
                else msgspec.convert(value, setting.type)
            )
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{key} must be {setting.accepts}") from error
        try:
            text = toml_text.assign(text, where, good)
        except ValueError as error:
            raise ConfigInvalid(f"{path} is not valid TOML, mend it first: {error}") from error
    if problems := reader.check_text(path, text):
        raise reader.invalid(problems)
    write_private(path, text.encode())


def unset_value(home: Path, key: str) -> None:
    """Take one key out of the file, so that its default is in force again."""
    from palyra.serve.config import toml_text

    path = home / reader.FILE
    where, _ = reader.parse_key(key)
    try:
        text = toml_text.remove(_read(path), where)
    except ValueError as error:
        raise ConfigInvalid(f"{path} is not valid TOML, mend it first: {error}") from error
    if text is None:
        raise NotFound(f"{key} is not set in {path}")
    if problems := reader.check_text(path, text):
        raise reader.invalid(problems)
    write_private(path, text.encode())


def remove_table(home: Path, table: tuple[str, ...]) -> None:
    """Take a whole table out of the file, such as `mcp.git`."""
    from palyra.serve.config import toml_text

    path = home / reader.FILE
    text = _read(path)
    try:
        after = toml_text.remove_table(text, table)
    except ValueError as error:
        raise ConfigInvalid(f"{path} is not valid TOML, mend it first: {error}") from error
    if after is None:
        raise NotFound(f"[{'.'.join(table)}] is not in {path}; it may come from the environment")
    if problems := reader.check_text(path, after):
        raise reader.invalid(problems)
    write_private(path, after.encode())


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid(f"{path} cannot be read: {error}") from error
