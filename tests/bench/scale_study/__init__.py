"""Studies of thousands of finished trials, made without a server."""
