"""Judging texts by rubrics with language models."""
