"""Where a sweep stands, for who looks at it from outside: the study's rows, and what the running process notes."""
