"""Configuration groups of specsweep, shipped inside the package."""
