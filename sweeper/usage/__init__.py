"""The command line as people meet it: its commands, its help, its completion. Loads nothing of a sweep."""
