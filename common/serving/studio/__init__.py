"""The studio: a page to speak with and to shape how it is said."""


def page() -> str:
    """The page's HTML."""
    return '<!DOCTYPE html><title>Studio</title><p>The studio is not there yet; <a href="docs">the interface</a> is.'
