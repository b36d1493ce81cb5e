"""Mechanisms that can say no, one a module."""
