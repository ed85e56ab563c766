"""Language models: one that comes along, any GGUF file, any URL, every hosted provider."""

from fabula.models.base import Answer, Choice, Model, Prompt, Sampling, Usage
from fabula.models.model_spec import ModelOptions, open_model

__all__ = [
    "Answer",
    "Choice",
    "Model",
    "ModelOptions",
    "Prompt",
    "Sampling",
    "Usage",
    "open_model",
]
