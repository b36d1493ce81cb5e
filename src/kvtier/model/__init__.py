"""A small grouped-query transformer in numpy, complete, to show on a real forward pass what tiering of its KV blocks changes."""
