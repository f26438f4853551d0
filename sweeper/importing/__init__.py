"""Results that people already have, made into a study: read (files), understood (columns, rows), written (study)."""
