"""Measures: functions from documents to measurements."""
