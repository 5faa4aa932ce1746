"""HTML pages that look like one product: templates with one stylesheet, tables that sort, and charts."""

from .render import (
    NAME as NAME,
    Cell as Cell,
    Link as Link,
    Number as Number,
    Row as Row,
    Term as Term,
    palette as palette,
    render_page as render_page,
    render_template as render_template,
    stylesheet as stylesheet,
)
