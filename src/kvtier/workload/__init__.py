"""Who reads which blocks, when."""
