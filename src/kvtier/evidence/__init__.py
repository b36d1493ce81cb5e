"""Labels, numbers, claims and where each came from."""
