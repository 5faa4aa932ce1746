"""The page of the interface at ``/docs``: a table of each path's fields, from the OpenAPI description."""

from typing import Any

from common.pages import render_page


def reference_page(description: dict[str, Any]) -> str:
    """The page of an OpenAPI description."""
    info, schemas = description["info"], description["components"]["schemas"]
    operations = []
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            bodies = operation.get("requestBody", {}).get("content", {})
            fields = {kind: schemas[one["schema"]["$ref"].split("/")[-1]]["properties"] for kind, one in bodies.items()}
            tables = {kind: [_row(name, field) for name, field in rows.items()] for kind, rows in fields.items()}
            operations.append((f"{method.upper()} {path}", operation.get("description", ""), tables))
    return render_page("serving/reference.html", title=f"{info['title']} {info['version']}", operations=operations)


def _row(name: str, field: dict[str, Any]) -> tuple[str, str, str]:
    """A field's name, its values in words, and its meaning."""
    kinds = []
    for one in field.get("anyOf", [field]):
        kind = ", ".join(map(str, one.get("enum", ()))) or one.get("type", "any")
        if "minimum" in one and "maximum" in one:
            kind += f" from {one['minimum']:g} to {one['maximum']:g}"
        kinds.append(kind)
    return name, " or ".join(kind for kind in kinds if kind != "null"), field.get("description", "")
