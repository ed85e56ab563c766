"""The command line: parses input, prints output. The logic lives in lower layers."""
