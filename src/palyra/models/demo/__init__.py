"""The built-in demo model: rule based, offline, clearly labelled, so that a newcomer without a key
sees the product work.
"""

from palyra.models.demo.provider import MODEL, NAME, DemoModel

__all__ = ["MODEL", "NAME", "DemoModel"]
