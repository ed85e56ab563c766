"""People's labels, and how far raters agree."""
