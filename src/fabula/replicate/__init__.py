"""The papers' tables, from the data that their authors released: one module per paper."""
