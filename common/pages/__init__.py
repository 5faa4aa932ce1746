"""HTML pages that look like one product: templates with one stylesheet, tables that sort, and charts."""

from common.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
