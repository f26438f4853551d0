"""Where a study lies: its database, its artifacts, who works on which trial, and reading all of it back."""
