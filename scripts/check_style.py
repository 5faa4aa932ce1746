"""Checks the project's layers and style, which ruff does not know; it imports nothing of the project.

    python scripts/check_style.py [folder]

Each finding is a line ``file:line: message``; the exit status is 1 if there is any.
"""

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("fastpitch", "hifigan", "waveglow", "tacotron2", "jasper")
DISPATCHERS = ("models", "data_functions", "loss_functions")
ENTRY_POINTS = ("train", "inference", "extract_mels")
PROJECT = {"common", "scripts", "tests", *PACKAGES, *DISPATCHERS, *ENTRY_POINTS}

FUNCTION_LINES = 70  # without its docstring; the aim is 60
FILE_LINES = 440  # the aim is 400
ENTRY_POINT_LINES = 270  # the aim is 250

# Package registries. In two parts, so that this file does not name them either.
REGISTRIES = tuple(
    f"{name}.{domain}"
    for name, domain in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("anaconda", "org"),
        ("download.pytorch", "org"),
        ("crates", "io"),
        ("proxy.golang", "org"),
        ("deb.debian", "org"),
    )
)
TEXT_LIMIT = 1_000_000  # bytes; larger files are data
SKIPPED_FOLDERS = {"__pycache__", "output", "LJSpeech-1.1", "pretrained_models", "data"}


@dataclass(frozen=True, order=True)
class Finding:
    """One breach of a rule."""

    path: str  # relative to the checked folder
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def check(root: Path) -> list[Finding]:
    """All findings in the project folder ``root``, in order of file and line."""
    findings = []
    for path in project_files(root):
        name = path.relative_to(root).as_posix()
        findings += [Finding(name, line, message) for line, message in check_file(path, name)]
    return sorted(findings)


def project_files(root: Path) -> list[Path]:
    """The files that are or could be committed; without git, all that are not hidden or made by a run."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split("\0")
        paths = [root / name for name in names if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for path in root.rglob("*") if not _is_skipped(path.relative_to(root))]
    return sorted(path for path in paths if path.is_file())


def _is_skipped(relative: Path) -> bool:
    return any((part.startswith(".") and part != ".ci") or part in SKIPPED_FOLDERS for part in relative.parts)


def check_file(path: Path, name: str) -> Iterator[tuple[int, str]]:
    """Findings (line, message) of one file; ``name`` is its path from the project's root, with slashes."""
    if name == "platform/__init__.py":
        yield 1, "platform/ must not be a package: it would shadow the standard library's module"
    if path.stat().st_size > TEXT_LIMIT:
        return
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    yield from registry_findings(text)
    if path.suffix == ".sh":
        yield from shell_findings(text)
    if path.suffix != ".py":
        return
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield error.lineno or 1, f"syntax error: {error.msg}"
        return
    yield from file_findings(tree, text, name)
    for node in ast.walk(tree):
        yield from node_findings(node)
        yield from import_findings(node, name)


def registry_findings(text: str) -> Iterator[tuple[int, str]]:
    """Lines that name a package registry: pip's own settings say where packages come from."""
    for number, line in enumerate(text.splitlines(), 1):
        for host in REGISTRIES:
            if host in line.lower():
                yield number, f"names the package registry {host}; leave it to the machine's settings"


def shell_findings(text: str) -> Iterator[tuple[int, str]]:
    """A shell script opens, after its #! line, with a comment that says what it is for."""
    lines = text.splitlines()
    first = 1 if lines and lines[0].startswith("#!") else 0
    if len(lines) <= first or not lines[first].startswith("# "):
        yield first + 1, "the script must open with a comment that says its purpose"


def file_findings(tree: ast.Module, text: str, name: str) -> Iterator[tuple[int, str]]:
    """Rules for a Python file as a whole: its docstring, its length, its place."""
    if not ast.get_docstring(tree):
        yield 1, "the file must open with a docstring of one sentence that says its purpose"
    stem = name.removesuffix(".py")
    if "/" not in name and stem not in DISPATCHERS + ENTRY_POINTS:
        yield 1, "the top level holds the entry points and dispatchers only; move this file into a folder"
    n_lines = len(text.splitlines())
    limit = ENTRY_POINT_LINES if stem in ENTRY_POINTS else FILE_LINES
    if n_lines > limit and not name.startswith("tests/"):
        yield limit, f"the file has {n_lines} lines, the limit is {limit}"


def node_findings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Rules for single statements and expressions."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
        yield node.lineno, ".cuda() fixes the device; choose it once and pass it (.to(device))"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"):
        yield node.lineno, f"{node.func.id}() runs text as code"
    if isinstance(node, ast.Global):
        yield node.lineno, f"global {', '.join(node.names)}: pass the state instead"
    if _is_sys_path(node):
        yield node.lineno, "sys.path is not to be touched; run from the project's root"
    if isinstance(node, ast.ExceptHandler) and node.type is None:
        yield node.lineno, "bare except also catches interrupts; name the errors"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        n_lines = function_lines(node)
        if n_lines > FUNCTION_LINES:
            yield node.lineno, f"function {node.name} has {n_lines} lines, the limit is {FUNCTION_LINES}"


def _is_sys_path(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return (node.value.id, node.attr) == ("sys", "path")
    return isinstance(node, ast.ImportFrom) and node.module == "sys" and any(a.name == "path" for a in node.names)


def function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function from ``def`` to its end, its docstring left out."""
    n_lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node, clean=False) is not None:
        docstring = node.body[0]
        n_lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return n_lines


def import_findings(node: ast.AST, name: str) -> Iterator[tuple[int, str]]:
    """Imports that reach out of the file's layer."""
    allowed = allowed_imports(name)
    if allowed is None:
        return
    for module in imported_modules(node, name):
        top = module.split(".")[0]
        if top in PROJECT and top not in allowed:
            layer = name.split("/")[0]
            yield node.lineno, f"{layer} must not import {module}; it may import {', '.join(sorted(allowed))}"


def allowed_imports(name: str) -> set[str] | None:
    """What of the project the file may import; None: anything."""
    top = name.split("/")[0].removesuffix(".py")
    if top == "common":
        return {"common"}
    if top in PACKAGES:
        return {"common", top}
    if top in DISPATCHERS:
        return {"common"}
    if top in ENTRY_POINTS:
        return {"common", *DISPATCHERS}
    if top == "scripts":
        return {"common", "scripts", *PACKAGES, *DISPATCHERS}
    return None


def imported_modules(node: ast.AST, name: str) -> list[str]:
    """Names of the modules that ``node`` imports, relative imports resolved from the file ``name``."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        if not node.level:
            return [node.module or ""]
        folders = name.split("/")[:-1]
        base = folders[: len(folders) - (node.level - 1)]
        if node.module:
            return [".".join([*base, node.module])]
        return [".".join([*base, alias.name]) for alias in node.names]
    if isinstance(node, ast.Call) and node.args and _called_name(node) in ("import_module", "__import__"):
        literal = node.args[0]
        if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
            return [literal.value]
    return []


def _called_name(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def main() -> int:
    """Print the findings; the exit status is 1 if there are any."""
    parser = argparse.ArgumentParser(description="check the project's layers and style")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    findings = check(parser.parse_args().root.resolve())
    for finding in findings:
        print(finding)
    if findings:
        print(f"{len(findings)} breaches of the rules (DESIGN 'Layers')", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
