"""What touches hardware, and what is fitted to it."""
