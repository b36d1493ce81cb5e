"""Web pages: self-contained, every number a link to its papers."""
