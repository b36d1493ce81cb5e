"""Figures and documents, made from result tables and numbers alone."""
