"""Statistics: from measurements to estimates and comparisons."""
