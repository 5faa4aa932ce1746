"""From a model's name to its package."""

from common.registry import ModelSpec, available_models, get_model

__all__ = ["ModelSpec", "available_models", "get_model"]
