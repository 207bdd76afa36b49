"""A model server that misbehaves on purpose: one named fault for each model."""

from palyra.models.faulty.provider import FaultyModel

__all__ = ["FaultyModel"]
