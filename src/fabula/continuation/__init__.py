"""Passages of stories, systems that continue them, and how well they do."""
