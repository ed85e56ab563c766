"""Writing feedback: stories with known faults, feedback on them, and how good it is.

Rashkin et al. 2025, "Help Me Write a Story: Evaluating LLMs' Ability to Generate Writing Feedback".
"""
