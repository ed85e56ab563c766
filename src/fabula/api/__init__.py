"""The public API of `import fabula`: frames, lists and folders in, results and frames out.

Each function corresponds to the command of the same name, with the same settings.
"""
