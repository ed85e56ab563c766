"""What every room uses: types, errors, scales, settings, files, caches, processes, records."""

__version__ = "0.1.0"
