"""A reference for a whole team: `fabula reference serve`, and what asks it."""
