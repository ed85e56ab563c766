"""Tasks that create documents or work on what people and models wrote: plots, stories, themes."""
