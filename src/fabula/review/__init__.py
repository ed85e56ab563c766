"""Every instrument on the same texts, on one page."""
