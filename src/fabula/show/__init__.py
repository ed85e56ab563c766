"""Tables, charts and pages, whatever they show."""
