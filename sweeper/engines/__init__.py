"""Engines: what specsweep knows about each inference server. Pure: no input, no output."""
