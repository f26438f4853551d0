"""Results that people already have, made into a study: files are read, rows understood, launches written."""
