"""The commands, a module each; a group with many has several."""
