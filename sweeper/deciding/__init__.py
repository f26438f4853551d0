"""What to launch next, and what all launches together say. Pure, and drawn from the study alone."""
