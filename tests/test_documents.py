"""README.md and docs/ say what the code does: commands, options, variables, messages, paths and links."""

import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from parsers import parser_of
from seed_commands import place_of_program
from shell import PROCESSOR, ROOT, SCRIPTS, read_shell_file, words_of

from common.data_report.findings import KINDS
from common.registry import available_models
from common.serving.options import KEY_VARIABLE
from scripts import options_page
from scripts.options_page import options_of
from speech_toolkit.__main__ import COMMANDS, parser_of as command_parser

OPTIONS = "docs/OPTIONS.md"  # is generated
MIGRATING = "docs/MIGRATING.md"  # too, and names options of other toolkits; see tests/test_published_options.py
DOCUMENTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))
}
PROGRAMS = {  # that the documents name options of
    "scripts.datasets.make_corpus",
    *("train", "inference", "inference --jasper x", "extract_mels", "extract_mels --checkpoint x", "serve"),
    *(f"train -m {model}" for model in available_models()),
    *("scripts.checkpoint_tools convert", "scripts.datasets.make_filelists"),
    *("scripts.download_models", "scripts.evaluate_voice", "scripts.checkpoint_tools inspect"),
    "scripts.import_recordings",
}
PROGRAMS_OF_OTHERS = ("curl", "docker", "tensorboard.main", "venv", "pip", "speaking/bin/pip")
USERS_SCRIPTS = sorted(path.name for path in (ROOT / "scripts").glob("*.sh") if path.name != "lib.sh")
FOLDERS = ("scripts", "common", "platform", "phrases", "filelists", "docs", "tests")
PACKAGES = tuple(re.sub(r"\W", "", model).lower() for model in available_models())
# Made by scripts, not in the repository; and lists of a corpus that a reader has.
MADE = re.compile(r"filelists/(ljs|my_voice)_(audio|mel)_\S+\.txt")


def bash_blocks(text: str) -> list[str]:
    """The fenced blocks of shell commands, without the indentation of a list they are in."""
    found = re.findall(r"^( *)```bash\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    return ["".join(line[len(indent) :] for line in block.splitlines(True)) for indent, block in found]


def commands() -> list[str]:
    """Every command line of the documents, continued lines joined, with those that are inline code."""
    lines = []
    for name, text in DOCUMENTS.items():
        for block in bash_blocks(text):
            lines += block.replace("\\\n", " ").splitlines()
        if name != OPTIONS:
            inline = r"`((?:\w+=(?:\"[^\"`]*\"|\S+) )*(?:bash|sbatch|\.venv/bin/python) [^`]*)`"
            lines += re.findall(inline + r"(?![^.\n]*\(command of commit)", text)  # which is no longer there
    return sorted({" ".join(shlex.split(line, comments=True)) and line.strip() for line in lines if line.strip()})


@cache
def option_names(program: str) -> set[str]:
    return {name for option in options_of(parser_of(program)) for name in option.names}


def check_options(words: list[str]) -> None:
    """Check that the program of a command has the options that follow it."""
    if words[0] == "speech" or "speech_toolkit" in words:
        name, *following = words[1 + words.index("speech" if words[0] == "speech" else "speech_toolkit") :]
        if name in COMMANDS:
            names = command_parser(name)._option_string_actions
            assert {word for word in following if word.startswith("--")} <= {*names, "--help"}, words
        else:
            assert name == "--help"
        return
    place = place_of_program(words)
    program, following = words[place].removesuffix(".py"), words[place + 1 :]
    options = {word.partition("=")[0].replace("_", "-") for word in following if re.match(r"--?[a-z]", word)}
    model = "".join(f" -m {following[i + 1]}" for i, word in enumerate(following) if word in ("-m", "--model"))
    if program == "train":
        program += model
    elif program == "inference" and "--jasper" in options:
        program += " --jasper x"
    elif program == "extract_mels" and "--checkpoint" in options:
        program += " --checkpoint x"
    elif program == "scripts.checkpoint_tools":
        program += f" {following[0]}"
    known = option_names(program) if options else set()
    if program == "scripts.datasets.describe_mels":  # which leaves those of the extraction alone
        known = known | option_names("extract_mels")
    assert options - {"--help", "--version"} <= known, words


def knows(path: Path, variable: str) -> bool:
    """Whether a script reads an environment variable."""
    if path.name == "download_models.sh" and variable.endswith(("_SOURCE", "_SHA256")):  # read in Python, by model
        return True
    script = SCRIPTS.get(read_shell_file(path).runs or "")
    declared = [
        known for model in (script.models or ("",) if script else ()) for _, known, _ in script.declarations(model)
    ]
    names = {
        "MODEL",
        "OMP_NUM_THREADS",
        KEY_VARIABLE,
        *PROCESSOR,
        *(name for one in declared for name in (one.variable, *one.published)),
    }
    texts = path.read_text(encoding="utf-8") + (ROOT / "scripts/lib.sh").read_text(encoding="utf-8")
    return variable in names or re.search(rf"\b{variable}\b", texts) is not None


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a document."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE):
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        number = 1
        while (unique := anchor if number == 1 else f"{anchor}-{number - 1}") in found:
            number += 1
        found.add(unique)
    return found


@pytest.mark.parametrize("command", commands())
def test_each_command_has_its_file_options_and_variables(command: str):
    variables, words = words_of(command)
    if any(program in words for program in PROGRAMS_OF_OTHERS):
        return
    scripts = [ROOT / word for word in words if word.endswith(".sh")]
    for path in scripts:  # whose options are those of the programs that it runs; tests/test_scripts_help.py checks them
        assert path.is_file() and [name for name in variables if not knows(path, name)] == []
    if words[0] == "speech":
        check_options(words)
    elif not scripts:
        program = words[place_of_program(words)].removesuffix(".py")
        assert (ROOT / f"{program.replace('.', '/')}.py").is_file()
        check_options(words)


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name not in (OPTIONS, MIGRATING)])
def test_each_option_named_in_a_document_exists(name: str):
    text = re.sub(r"```bash\n.*?```", "", DOCUMENTS[name], flags=re.DOTALL)
    named = {option.replace("_", "-") for option in re.findall(r"`(--[a-z][a-z0-9_-]*)", text)}
    assert named - set().union(*map(option_names, PROGRAMS)) - {"--help", "--version"} == set()


@pytest.mark.parametrize("path", options_page.PAGES, ids=lambda path: path.stem)
def test_tables_of_options_are_fresh_and_stale_ones_are_written_again(path: Path, tmp_path: Path, monkeypatch):
    fresh = path.read_text(encoding="utf-8")
    assert options_page.page(path) == fresh, f"{path.name} is stale: run python -m scripts.options_page"
    stale = tmp_path / path.name
    stale.write_text(re.sub(r"^\| `.*\n", "", fresh, count=1, flags=re.MULTILINE), encoding="utf-8")
    monkeypatch.setattr(options_page, "PAGES", [stale])
    monkeypatch.setattr("sys.argv", ["options_page"])
    assert options_page.main() == 0
    assert stale.read_text(encoding="utf-8") == fresh


def test_the_kinds_of_findings_in_the_table_are_those_of_the_data_report():
    rows = re.findall(r"^\| `([a-z_]+)` \| (refused|suspicious) \|", DOCUMENTS["docs/DATA.md"], re.MULTILINE)
    assert rows == [(name, kind["level"]) for name, kind in KINDS.items()]


def test_each_script_is_named_in_a_document_and_each_named_one_exists():
    text = "\n".join(text for name, text in DOCUMENTS.items() if name not in (OPTIONS, "docs/BENCHMARKS.md"))
    assert [name for name in USERS_SCRIPTS if f"scripts/{name}" not in text] == []
    assert [name for name in set(re.findall(r"scripts/(\w+\.sh)", text)) if name not in USERS_SCRIPTS] == []


def test_each_message_of_the_troubleshooting_is_one_that_the_code_prints():
    messages = re.findall(r"^\| `([^`]+)` \|", DOCUMENTS["docs/TROUBLESHOOTING.md"], re.MULTILINE)
    assert len(messages) > 25
    paths = [path for part in (*PACKAGES, "common", "scripts") for path in ROOT.glob(f"{part}/**/*.py")]
    source = "\n".join(path.read_text() for path in (*paths, *ROOT.glob("*.py"), *ROOT.glob("scripts/*.sh")))
    joined = re.sub(r'"\s*\n\s*f?"', "", source)  # string literals that continue in the next line
    assert [message for message in messages if message not in joined] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_file_link_and_anchor_of_a_document_exists(name: str):
    text = re.sub(r"```text\n.*?```", "", DOCUMENTS[name], flags=re.DOTALL)
    paths = set(re.findall(rf"(?<![\w/.])((?:{'|'.join((*FOLDERS, *PACKAGES))})/[\w./-]*\w)", text))
    assert [path for path in sorted(paths) if not (ROOT / path).exists() and not MADE.match(path)] == []
    wrong = []
    for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]+))?\)", text):
        target = (ROOT / name).parent.joinpath(link).resolve() if link else ROOT / name
        if not target.exists():
            wrong.append(link)
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            wrong.append(f"{link}#{anchor}")
    assert wrong == []
