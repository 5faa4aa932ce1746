"""Look up a model's package by its name."""

from common.registry import ModelSpec, available_models, get_model

__all__ = ["ModelSpec", "available_models", "get_model"]
