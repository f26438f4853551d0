"""The configuration described for others: editors (JSON Schema) and readers (the reference)."""
