"""Optuna samplers. They get an engine's rules as callables and know nothing of servers."""
