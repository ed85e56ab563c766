"""Writing feedback: stories with known faults, feedback on them, and what it is worth.

Rashkin et al. 2025, "Help Me Write a Story: Evaluating LLMs' Ability to Generate Writing Feedback".
"""
