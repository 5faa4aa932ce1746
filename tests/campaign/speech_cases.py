"""Malformed texts to speak, options, HTTP bodies, and variables of scripts."""

import argparse
import json
import sys
from pathlib import Path

from harness import ROOT, Case
from hypothesis import strategies as st
from values import PLAIN, mutations, places_of, text_mutations
from world import World

from scripts.options_page import parser_of

# ---- SSML

_ELEMENTS = "speak p s break prosody say-as phoneme sub emphasis voice lang mark audio x desc w token".split()
_ATTRIBUTES = {
    "rate": ("fast", "150%", "-1", "nan", "inf", "0%", "x"),
    "pitch": ("high", "+5st", "0Hz", "nan%"),
    "volume": ("loud", "+6dB", "nan"),
    "range": ("x-low", "-100%", "nan"),
    "contour": ("(0%,+20Hz)(10%,nan)", "(", "(200%,x)"),
    "time": ("500ms", "-1s", "nans"),
    "strength": ("strong", "x"),
    "interpret-as": ("date", "cardinal", "characters", "telephone", "time", "unit", "x"),
    "format": ("mdy", "x"),
    "alphabet": ("ipa", "x-arpabet", "x"),
    "ph": ("t\u0259", "", "XX9"),
    "alias": ("a", "", "<b>"),
    "name": ("ann", "bob", "x", "", "-1"),
    "src": ("/dev/zero", "file:///etc/passwd", "http://localhost/"),
    "xml:lang": ("en-us", "xx", ""),
}
_TEXTS = ("Go on.", "", "12:99", "&amp;", "&#0;", "&x;", "]]>", "<![CDATA[a]]>", "<!-- -->", "caf\u00e9")
XML = {
    "entities": '<!DOCTYPE s [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><speak>&b;</speak>',
    "external entity": '<!DOCTYPE s [<!ENTITY a SYSTEM "file:///etc/passwd">]><speak>&a;</speak>',
    "not closed": "<speak>a",
    "crossed": "<speak><p><s>a</p></s></speak>",
    "two roots": "<speak>a</speak><speak>b</speak>",
}


@st.composite
def _ssml(draw: st.DrawFn, depth: int = 3) -> str:
    name = draw(st.sampled_from(_ELEMENTS))
    attributes = draw(
        st.lists(st.sampled_from([(key, one) for key, many in _ATTRIBUTES.items() for one in many]), max_size=2)
    )
    text = draw(st.sampled_from(_TEXTS))
    inner = draw(_ssml(depth - 1)) if depth and draw(st.booleans()) else ""
    words = "".join(f' {key}="{value}"' for key, value in attributes)
    return f"<{name}{words}>{text}{inner}</{name}>"


def ssml(world: World) -> st.SearchStrategy[Case]:
    """Texts with markup, on the command line."""

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        if draw(st.integers(0, 3)) == 0:
            label = draw(st.sampled_from(list(XML)))
            text = XML[label]
        else:
            text = label = f"<speak>{draw(_ssml())}</speak>"
        wrong = label in ("not closed", "crossed", "external entity")

        def write(folder: Path) -> list[str]:
            (folder / "text.tsv").write_text("output\ttext\na.wav\t" + text.replace("\n", " ") + "\n")
            return ["--fastpitch", str(world.voice), "-i", "text.tsv", "-o", "out", "--no-audio", "--save-mels"]

        return Case(label if len(label) < 300 else label[:300], "inference", write, wrong=wrong)

    return cases()


# ---- options

_NUMBERS = ("nan", "inf", "-1", "0", "1e-30", "", " ", "x", "0x10", "1,5", "2147483648", "0.5")
PROGRAMS = ("inference", "inference --jasper x", "extract_mels", "train -m FastPitch", "train -m HiFi-GAN")
PROGRAMS += ("train -m Jasper", "train -m Tacotron2", "train -m WaveGlow")


def options(world: World) -> st.SearchStrategy[Case]:
    """Options with values that they cannot have."""
    numeric = {command: _numeric_options(command) for command in PROGRAMS}

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        command = draw(st.sampled_from(PROGRAMS))
        action = draw(st.sampled_from(numeric[command]))
        option, value = action.option_strings[-1], draw(st.sampled_from(_NUMBERS))
        program, *words = command.split()
        if program == "inference":
            value = "7" if value.isdecimal() and len(value) > 9 else value  # so many repeats would be right, and long
        # The rest is right, but for a list of training that does not exist, so that nothing long begins.
        wrong = value in ("nan", "x", "", " ", "0x10", "1,5")

        def write(folder: Path) -> list[str]:
            values = [f"{option}={value}"]
            if isinstance(action.nargs, int):
                values = [option, *[value] * action.nargs]
            if program == "inference":
                voice = world.speak(world.voice) if not words else world.speak(world.folder / "jasper.pt", "--jasper")
                return [*voice, *values]
            if program == "extract_mels":
                return ["-d", str(world.folder), "--wav-text-filelist", "absent.txt", "--extract-mels", *values]
            lists = "--training-files absent.txt --validation-files absent.txt -o out -d .".split()
            config = ["--model-config", str(world.folder / "sung" / "config.yaml")] if "Jasper" in command else []
            return [*words, *lists, *config, *values]

        return Case(f"{command} {option}={value[:20]!r}", program, write, wrong=wrong, status=2 if wrong else None)

    return cases()


def _numeric_options(command: str) -> list[argparse.Action]:
    actions = parser_of(command)._actions
    return [one for one in actions if one.option_strings and one.help != argparse.SUPPRESS and _is_number(one)]


def _is_number(action: argparse.Action) -> bool:
    if action.nargs == 0 or action.type in (None, Path) or not callable(action.type):
        return False
    try:
        return isinstance(action.type("1"), int | float)
    except (argparse.ArgumentTypeError, ValueError, TypeError):
        return False


# ---- variables of scripts

_JUNK = ("x", "maybe", "1.5", "a b", "a;touch canary", "$(touch canary)", "a[$(touch canary)]", "-1")
_VALUES = (
    *_JUNK,
    "`touch canary`",
    "../../evil",
    "*",
    "-rf",
    "--help",
    "a\nb",
    "TRUE",
    "yes",
    "1",
    "0",
    "off",
    "'",
    '"',
)
NUMBERS = ("BS", "GRAD_ACCUMULATION", "NUM_GPUS", "NNODES", "EPOCHS")
SWITCHES = ("AMP", "LEARNED_ALIGNMENT", "ENERGY", "LOAD_MEL_FROM_DISK", "CUDNN_BENCHMARK")
SCRIPTS = {
    "train.sh": (*NUMBERS, *SWITCHES, "MODEL", "NAME", "OUTPUT_DIR", "DATASET_PATH", "LEARNING_RATE", "SEED"),
    "prepare_dataset.sh": ("NAME", "DATASET_PATH", "N_VAL", "FILELISTS", "TRAIN_IDS", "TEXTGRIDS"),
    "inference_example.sh": ("FASTPITCH", "HIFIGAN", "PHRASES", "SPEAKER", "AMP", "OUTPUT_DIR", "BATCH_SIZE"),
    "serve.sh": ("FASTPITCH", "HIFIGAN", "JASPER", "PORT", "HOST", "EMA"),
    "finetune_voice.sh": ("SPEAKER", "EPOCHS", "OUTPUT_DIR", "FASTPITCH", "NUM_GPUS"),
    "evaluation.sh": ("JASPER", "DATASET_PATH", "OUTPUT_DIR", "NUM_GPUS", "EMA", "BATCH_SIZE"),
}


def variables(world: World) -> st.SearchStrategy[Case]:
    """Scripts with variables that they cannot have; they print the commands that they would run."""

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        script = draw(st.sampled_from(list(SCRIPTS)))
        name, value = draw(st.sampled_from(SCRIPTS[script])), draw(st.sampled_from(_VALUES))
        counts = name in NUMBERS and name != "EPOCHS"  # which train.py checks, and does not run here
        wrong = (counts and value in _JUNK) or (name in SWITCHES and value in ("maybe", "x", "1.5", "a b"))
        wrong &= script == "train.sh"
        environment = {"DRY_RUN": "1", "PYTHON": sys.executable, name: value}
        words = [str(ROOT / "scripts" / script)]
        label = f"{name}={value[:30]!r} {script}"
        return Case(label, "bash", lambda folder: words, wrong=wrong, status=None, environment=environment)

    return cases()


# ---- HTTP

SPEECH = {
    "model": "tts-1",
    "input": "Go on.",
    "voice": "ann",
    "response_format": "wav",
    "speed": 1.0,
    "seed": 1,
    "ssml": False,
    "timings": False,
    "pitch": 1.0,
    "volume": 1.0,
}


def http(world: World) -> st.SearchStrategy[Case]:
    """Bodies that a client may send to the server, which answers 4xx and never 5xx."""
    places = list(places_of(SPEECH))
    wave = (world.folder / "sung" / "0.wav").read_bytes()

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        how = draw(st.sampled_from(["value", "value", "bytes", "ssml", "form"]))
        path, kind, wrong = "/v1/audio/speech", "application/json", False
        body: bytes
        if how == "value":
            mutation = draw(mutations(places, PLAIN))
            body, label = json.dumps(mutation.applied(SPEECH)).encode(), mutation.label
            wrong = mutation.is_wrong(SPEECH) and mutation.name not in ("a dict",)
        elif how == "bytes":
            change = draw(text_mutations)
            body, label = change.applied(json.dumps(SPEECH).encode()), change.label
        elif how == "ssml":
            text = draw(
                st.one_of(st.sampled_from(list(XML.values())), _ssml().map(lambda one: f"<speak>{one}</speak>"))
            )
            body, label = json.dumps({"input": text}).encode(), text[:200]
        else:
            change = draw(text_mutations)
            part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
            whole = draw(st.booleans())
            content = wave if whole else change.applied(wave)
            body = part + content + b"\r\n--b--\r\n"
            body, label = (change.applied(body) if whole else body), f"{'form' if whole else 'file'} {change.label}"
            path, kind = "/v1/audio/transcriptions", "multipart/form-data; boundary=b"

        def write(folder: Path) -> list[str]:
            (folder / "body").write_bytes(body)
            models = [str(world.voice), str(world.vocoder), str(world.folder / "jasper.pt")]
            return [path, kind, "body", *models]

        return Case(f"{how}: {label}", "http_bodies", write, wrong=wrong)

    return cases()
