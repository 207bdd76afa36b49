"""Asking for a secret at a terminal."""

from palyra.cli.safe_text import clean
from palyra.client.types.vault import Secret


def label(secret: Secret) -> str:
    return f"{secret.scope}/{secret.name}"


def ask(name: str) -> str:
    from getpass import getpass

    return getpass(f"value of {clean(name)} (not shown): ")
