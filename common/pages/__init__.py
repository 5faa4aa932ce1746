"""HTML pages that look like one product: templates with one stylesheet, tables that sort, and charts."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
