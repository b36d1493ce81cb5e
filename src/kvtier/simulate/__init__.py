"""Revisions 1 and 2, each a reference and a compiled twin; caches asked request by request; lossless residency; the optimal bound."""
