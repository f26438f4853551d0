"""Prompts from files, and those that say nothing about speculation."""
