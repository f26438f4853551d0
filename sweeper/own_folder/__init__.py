"""A folder of the user's own to begin with: what is asked, what is written, what is right."""
