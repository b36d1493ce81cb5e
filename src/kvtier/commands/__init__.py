"""Groups of commands with a module of their own. Like the command line, they import what a command needs when it runs."""
