"""Rules of the project that ruff, import-linter and mypy cannot check."""

import ast
from collections.abc import Iterator
from pathlib import Path

from shell import ROOT, project_files

ENTRY_POINTS = ("train", "inference", "extract_mels", "serve")
FUNCTION_LINES = 60  # without its docstring
FILE_LINES = 400  # tests excepted
ENTRY_POINT_LINES = 250

# Package registries, which this file must not name either: "!" is the last dot.
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
    return [f"{name}:{line}: {message}" for name, line, message in sorted(findings)]


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
        if isinstance(node, ast.Attribute) and node.attr == "path" and ast.unparse(node) == "sys.path":
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


def test_the_project_keeps_its_own_rules():
    assert check(ROOT) == []


# The most lines of .py and .sh files, as the design has them: an issue that adds a job says what it adds.
SIZES = {
    "flat files of common/": 1697,
    "audio, nn": 1509,
    "text": 4700,
    "data": 850,
    "checkpoints": 1200,
    "training": 2000,
    "synthesis": 2500,
    "recognition": 450,
    "serving": 1900,
    "extraction": 1200,
    "importing": 1700,
    "evaluation, data_report, pages": 2000,
    "the six models": 7400,
    "scripts": 3569,
    "platform": 312,
    "files at the root, speech_toolkit": 500,
    "tests": 24000,
}
MODELS = ("fastpitch", "hifigan", "waveglow", "tacotron2", "jasper", "harmonic")


def room_of(name: str) -> str:
    """The row of `SIZES` that a file counts in."""
    folder, _, rest = name.partition("/")
    if folder in MODELS:
        return "the six models"
    if not rest or folder == "speech_toolkit":
        return "files at the root, speech_toolkit"
    if folder != "common":
        return folder
    room = rest.partition("/")[0] if "/" in rest else "flat files of common/"
    return next((row for row in SIZES if room in row.split(", ")), room)


def test_each_room_keeps_its_size():
    lines: dict[str, int] = {}
    for name in project_files(ROOT):
        if name.endswith((".py", ".sh")):
            room = room_of(name)
            lines[room] = lines.get(room, 0) + (ROOT / name).read_text(encoding="utf-8").count("\n")
    assert lines.keys() == SIZES.keys()
    assert {room: count for room, count in lines.items() if count > SIZES[room]} == {}
