"""A voice and a recognizer over HTTP: requests, their batching and limits, and the studio's page."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
