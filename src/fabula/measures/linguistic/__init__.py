"""The linguistic profile: measured properties of a text, or of a continuation in its story."""
