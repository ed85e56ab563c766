"""Tasks that make documents, and work on what people and models wrote: plots, stories, themes."""
