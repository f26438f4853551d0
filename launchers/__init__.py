"""Keeps one server process alive on one host; knows nothing about models."""
