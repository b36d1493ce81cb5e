"""Notebooks: read from their text form, searched for typed numbers, run in a kernel of their own, and written as one page each."""
