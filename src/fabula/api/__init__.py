"""What `import fabula` offers: frames, lists and folders in, results and frames out.

Each function does what the command of its name does, with the same settings under the same names.
"""
