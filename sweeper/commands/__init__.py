"""What each command of the command line does: one module per command, with a function of the command's name."""
