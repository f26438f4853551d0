"""Compares several studies: a new drafter, another host, an update."""
