"""Texts of a study: drawn, summarised, written."""
