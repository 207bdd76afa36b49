"""The table `[backups]`: what makes a value wrong, and how it becomes what backups are told."""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from palyra.core.errors import ConfigInvalid
from palyra.serve.config.schema import Config

if TYPE_CHECKING:
    from palyra.features.backups.model import BackupSettings

# What opens a backup must not lie in the vault, which is in the backup.
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:/.+|keyring:[A-Za-z0-9._-]+")
_SECRETS = ("passphrase", "access_key", "secret_key")


def objection(key: str, value: Any) -> str:
    """Return what is wrong with one value of the right type, never repeating the value."""
    if not value:
        return ""
    if key in ("every", "drill"):
        # Late: every command reads the settings, and few have this one.
        from palyra.features.backups.model import interval_ms

        try:
            interval_ms(value)
        except ConfigInvalid:
            return "must be hourly, daily, weekly, monthly, off, or hours or days as 6h or 2d"
    if key in _SECRETS and not _REFERENCE.fullmatch(value):
        return (
            "holds something that is not a reference; a secret does not belong in this file: write"
            ' "env:NAME" for an environment variable, "file:/path" for a file or "keyring:NAME" for'
            " the operating system's keyring"
        )
    if key == "target" and not value.startswith("/"):
        address = urlsplit(value)
        if address.scheme not in ("s3", "sftp") or not address.netloc:
            return "must be a folder from the root, s3://BUCKET/PREFIX or sftp://USER@HOST/FOLDER"
        return "must not hold a password" if address.password else ""
    if key == "endpoint" and urlsplit(value).scheme not in ("http", "https"):
        return "must be an http or https address"
    return ""


def settings(given: Config) -> "BackupSettings":
    from palyra.features.backups.model import BackupSettings

    wanted = given.backups
    return BackupSettings(
        **{name: getattr(wanted, name) for name in BackupSettings.__struct_fields__}
    )
