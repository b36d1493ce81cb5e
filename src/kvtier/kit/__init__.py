"""The measurement kit: what touches hardware. It writes raw rows; what is fitted to kept rows is in :mod:`kvtier.measure`."""
