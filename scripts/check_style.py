"""Checks rules of the project that ruff, mypy and import-linter cannot: lengths, places, devices, registries.

    python scripts/check_style.py [folder]

Each finding is a line ``file:line: message``; the exit status is 1 if there is any.
"""

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ENTRY_POINTS = ("train", "inference", "extract_mels", "serve")
FUNCTION_LINES = 60  # without its docstring
FILE_LINES = 400  # tests excepted
ENTRY_POINT_LINES = 250
README_LINES = 250
FLAT_FILES = 16  # .py files of common/ that lie in no room

# Package registries. With "!" for the last dot, so that this file does not name them either.
REGISTRIES = (
    (
        "pypi!org pythonhosted!org npmjs!org npmjs!com anaconda!org download.pytorch!org crates!io proxy.golang!org "
        "deb.debian!org"
    )
    .replace("!", ".")
    .split()
)
TEXT_LIMIT = 1_000_000  # bytes; larger files are data

Findings = Iterator[tuple[int, str]]  # line, message


def check(root: Path) -> list[str]:
    """All findings in the project folder ``root``, in order of file and line."""
    names = sorted(project_files(root))
    findings = [(name, line, message) for name in names for line, message in check_file(root / name, name)]
    flat = [name for name in names if name.startswith("common/") and name.count("/") == 1 and name.endswith(".py")]
    if len(flat) > FLAT_FILES + 1:  # and __init__.py
        findings.append((flat[-1], 1, f"common/ has {len(flat) - 1} flat files, the limit is {FLAT_FILES}; use a room"))
    return [f"{name}:{line}: {message}" for name, line, message in sorted(findings)]


def project_files(root: Path) -> list[str]:
    """Paths from ``root`` of the files that are or could be committed; without git, of all that are not hidden."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        paths = (path.relative_to(root) for path in root.rglob("*"))
        names = [path.as_posix() for path in paths if not path.parts[0].startswith(".")]
    return [name for name in names if name and (root / name).is_file()]


def check_file(path: Path, name: str) -> Findings:
    """Findings of one file; ``name`` is its path from the project's root, with slashes."""
    if name == "platform/__init__.py":
        yield 1, "platform/ must not be a package: it would shadow the standard library's module"
    if path.stat().st_size > TEXT_LIMIT:
        return
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        for host in REGISTRIES:
            if host in line.lower():
                yield number, f"names the package registry {host}; leave it to the machine's settings"
    if name == "README.md" and len(lines) > README_LINES:
        yield README_LINES, f"the file has {len(lines)} lines, the limit is {README_LINES}"
    if path.suffix == ".sh":
        first = 1 if text.startswith("#!") else 0
        if not "".join(lines[first : first + 1]).startswith("# "):
            yield first + 1, "the script must open with a comment that says its purpose"
    if path.suffix == ".py":
        yield from python_findings(ast.parse(text, name), path, name, n_lines=len(lines))


def python_findings(tree: ast.Module, path: Path, name: str, *, n_lines: int) -> Findings:
    """Rules for a Python file."""
    stem = name.removesuffix(".py")
    if not ast.get_docstring(tree):
        yield 1, "the file must open with a docstring of one sentence that says its purpose"
    if "/" not in name and stem not in (*ENTRY_POINTS, "models"):
        yield 1, "the top level holds the entry points and models.py only; move this file into a folder"
    limit = ENTRY_POINT_LINES if stem in ENTRY_POINTS else FILE_LINES
    if n_lines > limit and not name.startswith("tests/"):
        yield limit, f"the file has {n_lines} lines, the limit is {limit}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
            yield node.lineno, ".cuda() fixes the device; choose it once and pass it (.to(device))"
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.path":
            yield node.lineno, "sys.path is not to be touched; run from the project's root"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and function_lines(node) > FUNCTION_LINES:
            yield node.lineno, f"function {node.name} has {function_lines(node)} lines, the limit is {FUNCTION_LINES}"
        if "/" not in name and isinstance(node, ast.Import | ast.ImportFrom):
            yield from top_level_import_findings(node, path)


def function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function from ``def`` to its end, its docstring left out."""
    n_lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node, clean=False) is not None:
        docstring = node.body[0]
        n_lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return n_lines


def top_level_import_findings(node: ast.Import | ast.ImportFrom, path: Path) -> Findings:
    """Imports of a file at the top level, which import-linter does not see: no model and no other entry point."""
    allowed = ("common",) if path.stem == "models" else ("common", "models")
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    for top in (name.split(".")[0] for name in names):
        ours = path.with_name(f"{top}.py").is_file() or any(path.with_name(top).glob("*.py"))
        if ours and top not in allowed:
            yield node.lineno, f"{path.name} must not import {top}; it may import {' and '.join(allowed)}"


def main() -> int:
    """Print the findings; the exit status is 1 if there are any."""
    parser = argparse.ArgumentParser(description="check the project's style beyond ruff, mypy and import-linter")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    findings = check(parser.parse_args().root.resolve())
    print(*findings, sep="\n", end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
