"""How much of a text is found elsewhere, and whether a machine wrote it."""
