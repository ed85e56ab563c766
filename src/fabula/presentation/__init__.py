"""Charts, pages and tables of results."""
