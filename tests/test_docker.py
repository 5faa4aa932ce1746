"""Every step of the Dockerfile finds its files, and the image for CPUs serves the shipped voice."""

import re
from fnmatch import fnmatch

from shell import ROOT, TRACKED


def in_context(name: str) -> bool:
    """Whether Docker sees a file: the last pattern of .dockerignore that names it or a folder of it decides."""
    parts, kept = name.split("/"), True
    paths = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    for pattern in (ROOT / ".dockerignore").read_text().split():
        bare = pattern.removeprefix("!")
        if any(fnmatch(one, bare.removeprefix("**/")) for one in (parts if bare.startswith("**/") else paths)):
            kept = pattern.startswith("!")
    return kept


CONTEXT = [name for name in TRACKED if in_context(name)]


def stages() -> dict[str, list[tuple[str, str]]]:
    """Instructions of each stage, and of all before them, by their names."""
    lines = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found: dict[str, list[tuple[str, str]]] = {"": []}
    for line in filter(None, map(str.strip, lines.splitlines())):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            found[rest.split(" AS ")[1]] = []
        [*found.values()][-1].append((name, rest))
    return found


def test_every_step_of_each_image_finds_its_files():
    for steps in [*stages().values()][1:]:
        there: set[str] = set()
        for name, rest in steps:
            if name == "COPY":
                *sources, _ = rest.split()
                for source in sources:
                    copied = CONTEXT if source == "." else [one for one in CONTEXT if fnmatch(one, source)]
                    assert copied, source
                    there |= set(copied)
            elif name == "RUN":
                read = re.findall(r"(?:-r|-c|cp|-vFif \S+) (?:/tmp/)?((?:requirements|constraints)[\w*.-]+)", rest)
                assert all(any(fnmatch(one, file) for one in there) for file in read), rest
                if "/src" in rest:  # the whole context, for this step alone
                    assert "--mount=type=bind,target=/src" in rest and "pyproject.toml" in CONTEXT
    assert [*stages()][-1] == "gpu", "built where no target is named"
