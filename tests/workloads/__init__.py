"""Workloads: prompts, loads, templates, objectives."""
