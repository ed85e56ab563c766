"""The papers' tables, from the data that their authors released: a module a paper."""
