"""`import fabula`: every job as a function, with the names of the command line."""
