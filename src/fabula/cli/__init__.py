"""The command line: words typed, words shown. Logic lives below."""
