"""Groups of texts: what they share, and how they differ."""
