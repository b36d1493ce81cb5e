"""Figures: each as SVG, Vega-Lite spec and the CSV behind it, with its evidence label drawn in."""
