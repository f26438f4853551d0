"""A night as a whole: when it ends, what it may spend, what breaks it off, who is told, how the host is left."""
