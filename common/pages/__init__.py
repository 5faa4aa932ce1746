"""HTML pages that look like one product: templates with one stylesheet, tables that sort, and charts."""
