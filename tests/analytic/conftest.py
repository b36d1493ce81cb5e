from pathlib import Path

import pytest

from kvtier.analytic.geometry import load_models
from kvtier.analytic.inputs import load_platform

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "data/inputs/models.csv"
PLATFORM = ROOT / "data/inputs/platform.yaml"


@pytest.fixture(scope="session")
def models():
    return load_models(MODELS)


@pytest.fixture(scope="session")
def llama(models):
    return models["llama3_70b"]


@pytest.fixture(scope="session")
def platform():
    return load_platform(PLATFORM)


@pytest.fixture
def models_text():
    return MODELS.read_text(encoding="utf-8")


@pytest.fixture
def platform_text():
    return PLATFORM.read_text(encoding="utf-8")
