"""HTML pages with a common look: templates with one stylesheet, and sortable tables."""
