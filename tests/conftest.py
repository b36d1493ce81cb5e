"""What holds for all tests."""

from hypothesis import settings

# A deadline would make a test depend on what else the machine does.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
