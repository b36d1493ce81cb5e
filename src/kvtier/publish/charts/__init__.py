"""One module a figure: a table and the ledger in, a `theme.Figure` out."""
