"""Written by scripts/clients.py from the route table: types of the verbs about listeners."""

from palyra.client.types.admin import ConfigReloaded

__all__ = ["ConfigReloaded"]
