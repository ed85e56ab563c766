"""A text line by line, as a book, and by the surprise at its words."""
