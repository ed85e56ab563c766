"""What is counted in a text: the fifteen metrics, profiles, names and who is meant."""
