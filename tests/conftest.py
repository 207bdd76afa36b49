"""What holds for all tests."""

from hypothesis import settings

# How long one example takes says more about the machine than about the code.
settings.register_profile("palyra", deadline=None)
settings.load_profile("palyra")
