"""Numbers of the analytic stage, one module a topic: key, value, unit, definition; labels come from the inputs."""
