"""A voice and a recognizer over HTTP: requests, their batching and limits, and the studio's page."""

from common.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
