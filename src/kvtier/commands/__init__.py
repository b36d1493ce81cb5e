"""Commands of the command line, one module each. Whatever a command needs is imported when it runs."""
