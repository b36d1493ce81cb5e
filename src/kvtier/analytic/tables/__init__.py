"""Tables of the analytic stage, one module a topic: columns declared once, and the functions that fill them."""
