"""What the head and the last part of the appendix list."""

from __future__ import annotations

import re

from kvtier.publish.pages.markup import plain_text
from kvtier.publish.pages.page import Page


def test_every_claim_is_counted_once(page: Page):
    counts = [int(plain_text(count)) for *_, count in page.verdict_counts()]
    assert all(counts)
    assert sum(counts) == len(page.facts.claims.records)


def test_every_retracted_quantity_leads_to_its_box(page: Page):
    for entry, (place, quantity) in zip(page.sources.retractions, page.retracted(), strict=True):
        assert quantity == entry.quantity
        assert re.search(rf'<div class="retraction" role="note" id="{place}"', page.retraction(entry.id))


def test_a_class_is_that_of_the_ledger(page: Page):
    assert page.label("measured.gb10.stream.copy_gbps") == "Measured"
