"""Rubrics: the items by which people and models judge a text, as data."""
