"""The bench of the search: how many restarts a sampler needs, on simulated servers and on published tables."""
