"""The hooks of the site are no part of the package: they are imported by their files."""

import importlib
import sys
from pathlib import Path

import pytest

HOOKS = Path(__file__).resolve().parents[2] / "docs/hooks"


@pytest.fixture(scope="session")
def hook():
    """A hook by its name."""

    def load(name):
        sys.path.insert(0, str(HOOKS))
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(str(HOOKS))

    return load
