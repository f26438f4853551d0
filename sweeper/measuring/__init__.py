"""Measuring a running server: what is sent, when it is enough, and the numbers drawn from it."""
