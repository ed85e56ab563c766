"""The linguistic profile: what a text, or a continuation in its story, is like in measured ways."""
