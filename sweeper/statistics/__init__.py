"""Spreads, ratios and effects with their uncertainty. Pure: it knows nothing of studies."""
