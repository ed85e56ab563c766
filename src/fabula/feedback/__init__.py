"""Broken stories, feedback on them, and what it is worth."""
