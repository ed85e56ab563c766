"""A reference for a whole team: the server `fabula reference serve`, and its client."""
