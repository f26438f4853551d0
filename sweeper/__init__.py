"""The sweep: configuration, study, trials, measuring and recording."""
