"""Writes a report's blocks as Markdown and as a page of HTML."""
