"""Finds secrets in text and replaces each with a stable placeholder. Nothing it has passed holds a
secret it knows how to see.
"""

from palyra.core.redaction.engine import PLACEHOLDER, SecretFinding, SecretRedactor
from palyra.core.redaction.stream import StreamRedactor

__all__ = ["PLACEHOLDER", "SecretFinding", "SecretRedactor", "StreamRedactor"]
