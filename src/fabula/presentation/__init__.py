"""Pictures, pages and tables from what was measured."""
