"""README.md and docs/ say what the code does: commands, options, defaults, variables, messages and paths."""

import importlib
import os
import re
import shlex
import subprocess
import sys
from argparse import Namespace
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest
import torch

import extract_mels
import inference
import train
from common.config import AudioConfig
from common.recognition.arguments import parse_recognition_args
from hifigan.model import PRESETS
from scripts.evaluate_voice import build_parser as build_evaluation_parser
from tests.corpus import add_clip
from waveglow.config import ModelConfig as WaveGlowConfig

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
# What the arguments of a shell script go to.
ARGUMENTS_OF = {
    "scripts/quickstart.sh": "scripts.demos.quickstart",
    "scripts/train.sh": "train",
    "scripts/slurm_train.sh": "train",
    "scripts/prepare_dataset.sh": "extract_mels",
    "scripts/inference_example.sh": "inference",
    "scripts/inference_benchmark.sh": "inference",
    "scripts/benchmark_train.sh": "scripts.benchmarks.train",
    "scripts/benchmark_extract.sh": "scripts.benchmarks.extract",
    "scripts/benchmark_decoder.sh": "scripts.benchmark_decoder",
    "scripts/align_accuracy.sh": "scripts.demos.align_accuracy",
    "scripts/two_speakers.sh": "scripts.demos.two_speakers",
    "scripts/benchmark_aligner.sh": "scripts.benchmarks.aligner",
    "scripts/train_lj22khz.sh": "train -m HiFi-GAN",
    "scripts/train_tacotron2.sh": "train -m Tacotron2",
    "scripts/train_waveglow.sh": "train -m WaveGlow",
    "scripts/train_benchmark_waveglow.sh": "scripts.benchmarks.largest_batch",
    "scripts/fine_tune.sh": "train -m HiFi-GAN",
    "scripts/train_benchmark.sh": "train -m HiFi-GAN",
    "scripts/extract_fine_tune_mels.sh": "extract_mels --checkpoint x",
    "scripts/download_models.sh": "scripts.download_models",
    "scripts/train_jasper.sh": "train -m Jasper",
    "scripts/train_digits.sh": "train -m Jasper",
    "scripts/train_benchmark_jasper.sh": "train -m Jasper",
    "scripts/evaluation.sh": "inference --jasper x",
    "scripts/inference_benchmark_jasper.sh": "inference --jasper x",
    "scripts/preprocess_librispeech.sh": "scripts.datasets.preprocess_librispeech",
    "scripts/evaluate_voice.sh": "scripts.evaluate_voice",
}
TRAINED = ("lj22khz", "tacotron2", "waveglow", "jasper")
TRAINERS = ("scripts/train.sh", *(f"scripts/train_{name}.sh" for name in TRAINED))
# Scripts that hand their variables on, and where to.
VARIABLES_OF = {
    "platform/": TRAINERS,
    "slurm_train.sh": TRAINERS,
    "fine_tune.sh": ("scripts/train_lj22khz.sh",),
}
PROGRAMS_OF_OTHERS = ("docker", "tensorboard.main")
JOBS = ("train", "inference", "extract_mels", *sorted({*ARGUMENTS_OF.values()}))
OTHER_MODELS = {f"train.py -m {model}": model for model in ("HiFi-GAN", "Tacotron2", "WaveGlow", "Jasper")}


def training_options(model: str) -> Namespace:
    """What ``train.py`` makes of as few options as it takes."""
    return train.parse_args(["-m", model, *"-o o --training-files t --validation-files v --epochs 1".split()])


def published_options(model: str) -> Namespace:
    """The same of a model that knows its number of epochs, with its architecture where options are left out."""
    args = train.parse_args(["-m", model, *"-o o --training-files t --validation-files v".split()])
    if model == "HiFi-GAN":
        return Namespace(**{**vars(PRESETS[args.preset]), **vars(args)})
    if model == "WaveGlow":  # whose options have names of their own
        fields = asdict(WaveGlowConfig())
        names = {"n_flows": "flows", "n_group": "groups", "n_early_every": "early_every", "n_early_size": "early_size"}
        return Namespace(**{names.get(name, name): value for name, value in fields.items()}, **vars(args))
    return args


def evaluation_options() -> Namespace:
    """What evaluate_voice makes of no options; its three words are no options."""
    args = vars(build_evaluation_parser().parse_args("g v l".split()))
    return Namespace(**{name: value for name, value in args.items() if name not in ("generator", "vocoder", "list")})


DEFAULTS = {
    **{command: partial(published_options, model) for command, model in OTHER_MODELS.items()},
    "train.py": lambda: training_options("FastPitch"),
    "inference.py": lambda: inference.parse_args("-i i -o o --fastpitch f".split()),
    "inference.py --jasper": lambda: parse_recognition_args("--jasper j -i i".split()),
    "scripts/evaluate_voice.sh": evaluation_options,
    "extract_mels.py": lambda: extract_mels.build_parser().parse_args("--wav-text-filelist l".split()),
}


def code_blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language, without the indentation of the list they stand in."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    return ["".join(line[len(indent) :] for line in block.splitlines(True)) for indent, block in found]


def heredocs() -> list[str]:
    """The Python of README's blocks that is given to the interpreter on its standard input."""
    blocks = code_blocks(README, "bash")
    return [code for block in blocks for code in re.findall(r"<<'EOF'\n(.*?)^EOF$", block, re.DOTALL | re.MULTILINE)]


def commands() -> list[str]:
    """Every command line of the documents, continued lines joined, with those of tables that run a script."""
    lines = []
    for text in DOCUMENTS.values():
        for block in code_blocks(text, "bash"):
            shell = re.sub(r"(<<'EOF')\n.*?^EOF$", r"\1", block, flags=re.DOTALL | re.MULTILINE)
            lines += shell.replace("\\\n", " ").splitlines()
        lines += re.findall(r"`((?:\w+=(?:\"[^\"`]*\"|\S+) )*(?:bash|sbatch) [^`]*)`", text)
    return [line.strip() for line in lines if line.strip()]


def words_of(command: str) -> tuple[dict[str, str], list[str]]:
    """The variables set before a command, and its words."""
    words = shlex.split(command.replace("<<'EOF'", ""))
    variables = {}
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0], re.DOTALL):
        name, _, variables[name] = words.pop(0).partition("=")
    return variables, words


def options_of(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> set[str]:
    """Every option that the --help of a command (a module, and what else chooses its options) lists."""
    module, *words = command.split()
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setattr(sys, "argv", [module, *words, "--help"])
    with pytest.raises(SystemExit):
        importlib.import_module(module).main()
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", capsys.readouterr().out))


def tables(kind: str) -> list[tuple[str, list[list[str]]]]:
    """The tables below a comment ``<!-- kind: name -->``: that name, and the first three cells of each row."""
    found = []
    documents = "\n".join(DOCUMENTS.values())
    for name, table in re.findall(rf"<!-- {kind}: (.+) -->\n\n((?:\|.*\n)+)", documents):
        rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in table.splitlines()[2:]]
        found.append((name, rows))
    return found


def test_the_documents_hold_commands_to_check():
    assert len(commands()) > 30
    assert {name for name, _ in tables("options")} == set(DEFAULTS)


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_each_command_has_its_file_options_and_variables(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    variables, words = words_of(command)
    if any(program in words for program in PROGRAMS_OF_OTHERS):
        return
    script = next((word for word in words if word.endswith((".sh", ".py"))), None)
    if script is None:
        assert words[-1] == "-", command  # Python on the standard input
        return
    assert (ROOT / script).is_file()
    if script == "scripts/test.sh":  # whose arguments are pytest's
        return
    text = (ROOT / script).read_text() + (ROOT / "scripts/lib.sh").read_text()
    text += "".join(
        (ROOT / other).read_text() for part, others in VARIABLES_OF.items() if part in script for other in others
    )
    if script == "scripts/download_models.sh":  # read in Python, one for each model
        variables = {name: value for name, value in variables.items() if not name.endswith(("_SOURCE", "_SHA256"))}
    variables.pop("OMP_NUM_THREADS", None)  # PyTorch's own
    assert [name for name in variables if f"${{{name}" not in text] == []
    following = words[words.index(script) + 1 :]
    options = {word.partition("=")[0].replace("_", "-") for word in following if re.match(r"--?[a-z]", word)}
    module = script.removesuffix(".py") if script.endswith(".py") else ARGUMENTS_OF.get(script, "")
    if script == "inference.py" and "--jasper" in options:
        module = "inference --jasper x"
    assert not options or options <= options_of(module, monkeypatch, capsys)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_option_named_in_a_document_exists(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    text = re.sub(r"```bash\n.*?```", "", DOCUMENTS[name], flags=re.DOTALL)
    named = {option.replace("_", "-") for option in re.findall(r"`(--[a-z][a-z0-9_-]*)", text)}
    known = set().union(*(options_of(module, monkeypatch, capsys) for module in JOBS))
    assert named - known == set()


def shown(value: object) -> str:
    """A default as the tables have it."""
    if isinstance(value, list | tuple):
        words = [",".join(map(str, item)) if isinstance(item, tuple) else str(item) for item in value]
        return f"`{' '.join(words)}`" if value else "-"
    return {None: "-", False: "off", True: "on"}[value] if value is None or isinstance(value, bool) else f"`{value}`"


def default_of(args: Namespace, option: str) -> str:
    """The default that an option really has."""
    name = option.removeprefix("--").replace("-", "_")
    audio = {"n_mel_channels" if key == "n_mels" else key: value for key, value in asdict(AudioConfig()).items()}
    return shown(audio[name] if name in audio and not hasattr(args, name) else getattr(args, name))


@pytest.mark.parametrize(("command", "rows"), tables("options"), ids=lambda value: value if type(value) is str else "")
def test_each_default_in_a_table_of_options_is_the_real_one(command: str, rows: list[list[str]]):
    args = DEFAULTS[command]()
    wrong = []
    for names, default, _ in rows:
        options = re.findall(r"`(--[a-z0-9-]+)`", names)
        assert options, names
        given = default.split(", ") if ", " in default else [default] * len(options)
        for option, value in zip(options, given, strict=True):
            needed = option in ("--output", "--fastpitch") and command == "inference.py"  # given above
            if value != "required" and not needed and default_of(args, option) != value:
                wrong.append(f"{option}: {value} in README.md, {default_of(args, option)} in the code")
    assert wrong == []


@pytest.mark.parametrize(("command", "rows"), tables("options"), ids=lambda value: value if type(value) is str else "")
def test_each_option_of_a_command_is_in_its_table(command: str, rows: list[list[str]]):
    listed = {option for names, _, _ in rows for option in re.findall(r"`--([a-z0-9-]+)`", names)}
    args = vars(DEFAULTS[command]())
    there = set(args)
    if command in OTHER_MODELS:  # its table has what train.py's has not, or has with another default
        others = vars(DEFAULTS["train.py"]())
        alike = {name for name in there & set(others) if args[name] == others[name]}
        there = there - alike - {"model", "n_mel_channels"}
    assert {name.replace("_", "-") for name in there} - listed == set()


@pytest.mark.parametrize(("script", "rows"), tables("variables"), ids=lambda value: value if type(value) is str else "")
def test_the_table_of_variables_is_that_of_the_script(script: str, rows: list[list[str]]):
    text = (ROOT / script).read_text() + (ROOT / "scripts" / "lib.sh").read_text()
    real = dict(re.findall(r'^ *: "\$\{(\w+):=(.*?)\}"', text, re.MULTILINE))
    documented: dict[str, str] = {}
    for names, default, _ in rows:
        variables = re.findall(r"`(\w+)`", names)
        values = default.split(", ") if ", " in default else [default] * len(variables)
        documented |= dict(zip(variables, values, strict=True))
    assert [name for name in documented if f"${{{name}" not in text] == []
    fixed = {name: value for name, value in real.items() if "$" not in value}  # the others are computed
    if "set_launcher" not in (ROOT / script).read_text():
        fixed.pop("PORT")  # of scripts/lib.sh, for those that start several processes
    assert {name: value.strip("`") for name, value in documented.items() if name in fixed} == fixed


def test_each_message_of_the_troubleshooting_is_one_that_the_code_prints():
    section = README.partition("## Troubleshooting")[2].partition("\n## ")[0]
    messages = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert len(messages) > 12
    paths = [*ROOT.glob("*.py"), *ROOT.glob("common/**/*.py"), *ROOT.glob("fastpitch/*.py"), *ROOT.glob("scripts/*.*")]
    paths += [path for package in ("hifigan", "tacotron2", "waveglow") for path in ROOT.glob(f"{package}/*.py")]
    source = "\n".join(path.read_text() for path in paths)
    joined = re.sub(r'"\s*\n\s*f?"', "", source)  # string literals that go on in the next line
    assert [message for message in messages if message not in joined] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_file_and_link_of_a_document_exists(name: str):
    text = DOCUMENTS[name]
    folders = (
        "scripts",
        "common",
        "fastpitch",
        "hifigan",
        "tacotron2",
        "waveglow",
        "jasper",
        "platform",
        "phrases",
        "docs",
        "tests",
    )
    paths = set(re.findall(rf"`((?:{'|'.join(folders)})/[\w./-]*)`", text))
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert [link for link in links if not (ROOT / name).parent.joinpath(link).exists()] == []
    headings = {re.sub(r"[^\w -]", "", line.strip("# ").lower()).replace(" ", "-") for line in text.splitlines()}
    assert [anchor for anchor in re.findall(r"\]\(#([^)]+)\)", text) if anchor not in headings] == []


def test_the_python_in_the_readme_runs(tmp_path: Path):
    folder = tmp_path / "my_voice"
    lines = [add_clip(folder, name, 1.0) for name in ("a", "b")]
    texts = [line.strip().partition("|")[2] for line in lines]
    (folder / "metadata.csv").write_text("".join(f"{name}|as written|{text}\n" for name, text in zip("ab", texts)))
    (tmp_path / "output").mkdir()
    (tmp_path / "phrases").symlink_to(ROOT / "phrases")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    programs = heredocs()
    assert len(programs) == 2
    for code in programs:
        done = subprocess.run(
            [sys.executable, "-"], input=code, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
    durations = torch.load(folder / "durations" / "a.pt", weights_only=True)
    assert (len(durations), int(durations.sum())) == (len(texts[0]), 1 + 22050 // 256)
    phones = (tmp_path / "output" / "phones.tsv").read_text().splitlines()
    assert len(phones) == 11
    assert phones[1].startswith("devset10_01.wav\tsil ")
