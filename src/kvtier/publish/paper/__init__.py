"""The paper: a Typst source that can print a number by its key alone, checked as it will be read, then typeset."""
