"""The published ledger and claims, as pages read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvtier.publish import sources
from kvtier.publish.facts import Facts
from kvtier.publish.pages.page import Page
from kvtier.publish.sources import Given

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "data" / "published"


@pytest.fixture(scope="session")
def given() -> Given:
    return Given(
        ROOT / "data" / "numbers.json",
        ROOT / "data" / "claims.json",
        sorted(Path(PUBLISHED, "claims").glob("*.yaml")),
        PUBLISHED / "findings.yaml",
        PUBLISHED / "retractions.yaml",
        PUBLISHED / "survival.yaml",
    )


@pytest.fixture(scope="session")
def read(given):
    return sources.read(given)


@pytest.fixture
def facts(read) -> Facts:
    return Facts(read[0], read[1].claims)


@pytest.fixture
def page(facts, read) -> Page:
    return Page(facts, read[1], {}, {})
