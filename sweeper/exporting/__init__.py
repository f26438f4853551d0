"""What to run in production: a measured configuration as files of other programs. Pure but for writing them."""
