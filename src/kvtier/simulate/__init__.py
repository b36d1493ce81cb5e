"""Simulators of the three revisions, their policies and metrics."""
