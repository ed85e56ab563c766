"""Everything a user can ask for: one module per job, with its settings, its run and its result.

A job's settings are a frozen dataclass (`fabula.settings`). Commands, the desk, Python and the
workers of a cluster call the same job with the same settings. Modules here import lazily, so that a
command's help appears at once.
"""
