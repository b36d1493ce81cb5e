"""Arithmetic over stated inputs: sizes, tiers, attention state, scoring."""
