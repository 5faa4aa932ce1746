"""Scripts that download corpora and prepare them: prepare_dataset, download_..., preprocess_librispeech."""

from dataclasses import replace
from pathlib import Path

from common.audio.options import SETTINGS
from common.errors import InputError
from common.files import read_lines
from common.importing.options import SPEAKERS, import_command
from common.text.arpabet import load_dictionary
from common.text.languages import guess_language
from common.text.teacher import TEACHER
from scripts import launch, train
from scripts.datasets.make_filelists import SPLITS, ListOptions
from scripts.launch import GPU, cuda, dry_run, exec_or_print, given, note, python, require, run_or_print, script
from scripts.speaking import downloaded
from scripts.train import list_path
from scripts.variables import LIBRISPEECH, Variables

_LJSPEECH = "DATASET_ARCHIVE=https://data.keithito.com/data/speech/LJSpeech-1.1.tar.bz2"  # defaults of variables
_LJSPEECH_SHA256 = "be1a30453f28eb8dd26af4101ae40cbf2c50413b1bb21936cbcdc6fae3de8aa5"
_FSDD = "DATASET_ARCHIVE=https://github.com/Jakobovski/free-spoken-digit-dataset/archive/refs/tags/v1.0.10.tar.gz"


@script({f"{GPU} dataset_path name filelists features language tacotron2_checkpoint audio_config": (), ListOptions: ()})
def prepare_dataset(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Split a corpus into lists, and extract its features."""
    corpus = require(own.dataset_path or train.find_ljspeech(), "no such folder; run scripts/download_dataset.sh")
    own, features, options = replace(own, dataset_path=corpus, language=_language(own, corpus)), own.features, given()
    texts, recordings = (list_path(own, columns, "train") for columns in ("audio_text", "audio"))
    has_text = (corpus / "metadata.csv").is_file() or texts.is_file()
    if not has_text and corpus.is_dir() and features in ("auto", "false"):
        other = f"for a vocoder; transcripts of other forms: {import_command(corpus)}"
        note(f"note: {corpus} has no metadata.csv: lists of recordings alone are made, {other}")
        if features == "auto" and not (own.tacotron2_checkpoint or words):
            features = "false"
    if features in ("auto", "true"):
        own, options = _choose_durations(own, corpus)
        features = "true" if options else "mels"
    found = texts.is_file() or (recordings.is_file() and not (corpus / "wavs").is_dir())
    if found and not dry_run() and not (corpus / "metadata.csv").is_file():
        note(f"note: {corpus} has no metadata.csv: the lists {own.filelists}/{own.name}_... are kept as they are")
    else:
        own_lists = given(dataset_path=corpus, output=own.filelists, name=own.name)
        own_lists += prepare_dataset.passed_on(environ)
        run_or_print([python(), "-m", "scripts.datasets.make_filelists", *own_lists])
    if not (settings := own.audio_config or corpus / SETTINGS).is_file():
        where = given(dataset_path=corpus, output=settings, like=own.tacotron2_checkpoint)
        run_or_print([python(), "-m", "scripts.datasets.describe_mels", *words, *where])
    if features != "false":
        made = [split for split in SPLITS if environ.get(f"N_{split.upper()}") != "0"]  # as a dry run says it
        if not dry_run():
            made = [split for split in SPLITS if list_path(own, "audio_text", split).is_file()]
        _extract(own, corpus, features, made, ["--extract-mels", *options, *cuda(own), *words])
    if features != "true" and (texts.is_file() or dry_run()):
        language = own.language or "en-us"  # phones, which a voice learns faster than spelling
        _print_next(own, "for a voice that finds its durations", "FastPitch", "audio_text", f"LANGUAGE={language}")
    columns = "audio_text" if texts.is_file() and not recordings.is_file() else "audio"  # of which it reads the first
    _print_next(own, "for a vocoder", "HiFi-GAN", columns)


def _language(own: Variables, corpus: Path) -> str | None:
    """LANGUAGE, or the language that the texts look like unless that is English, which a note names."""
    lists = (list_path(own, "audio_text", "train"), corpus / "metadata.csv")
    path = next((path for path in lists if path.is_file()), None)
    if own.language or path is None:
        return own.language
    found = guess_language(line.split("|")[1] for line in read_lines(path) if "|" in line)
    if found in ("", "en"):
        return None
    note(f"note: {path} looks like language {found}; set LANGUAGE if it is another one")
    return found


def _choose_durations(own: Variables, corpus: Path) -> tuple[Variables, list[str | Path]]:
    """The variables with the Tacotron 2 that makes durations, and options that extract durations and pitch.

    There are no options where nothing gives durations.

    Raises:
        InputError: FEATURES=true, and nothing gives durations.
    """
    pitch: list[str | Path] = ["--extract-pitch-char"]
    tacotron2, stored = own.tacotron2_checkpoint, any(corpus.glob("durations/*.pt"))
    if tacotron2 is None and any(corpus.glob("TextGrid/*.TextGrid")):
        return own, [*pitch, "--extract-durs-from-textgrids"]
    if tacotron2 is None and (not stored or (corpus / "durations" / TEACHER).is_file()):
        tacotron2 = None if own.language else next(iter(downloaded("Tacotron2")), None)  # which reads English letters
        if tacotron2:
            note(f"note: durations from {tacotron2}, symbols that it lacks dropped; FEATURES=false takes none")
        elif not stored:
            missing = f"no durations: put TextGrids into {corpus}/TextGrid, or set TACOTRON2_CHECKPOINT to a Tacotron 2"
            if own.features == "true":
                raise InputError(missing)
            note(f"note: {missing}; without them FastPitch learns its alignment (1.1), and a vocoder needs none")
            return own, []
    teacher = ["--extract-durations", "--tacotron2-checkpoint", tacotron2] if tacotron2 else []
    return replace(own, tacotron2_checkpoint=tacotron2), [*pitch, *teacher]


def _extract(own: Variables, corpus: Path, features: str, splits: list[str], options: list[str | Path]) -> None:
    """Make mel-spectrograms, and features of FastPitch; prints what trains on them."""
    model, columns = ("Tacotron2", "mel_text") if features == "mels" else ("FastPitch", "mel_dur_pitch_text")
    if not splits:
        raise InputError(f"{corpus}/metadata.csv: no such file; text-to-mel models need transcripts")
    recordings = [list_path(own, "audio_text", split) for split in splits]
    lists = [list_path(own, columns, split) for split in splits]  # the first one's pitch statistics normalize all
    files = ["--wav-text-filelist", *recordings, "--output-meta-file", *lists, *given(audio_config=own.audio_config)]
    run_or_print([python(), "extract_mels.py", "--dataset-path", corpus, *files, *options])
    settings = []  # by which train.sh reads the text; a Tacotron 2 says its own
    if features == "mels" and own.language:
        settings = [f"LANGUAGE={own.language}"]
    if "--extract-durs-from-textgrids" in options:
        settings = ["INPUT_TYPE=phone"]
        if lists[0].is_file():
            phones = "".join(line.split("|")[3] for line in read_lines(lists[0]))
            settings.append(f"SYMBOL_SET={'arpabet' if phones.isascii() else 'ipa'}")
    _print_next(own, "for Tacotron 2" if features == "mels" else "", model, columns, *settings)


def _print_next(own: Variables, what: str, model: str, columns: str, *settings: str) -> None:
    """Print the command that trains on the lists of those columns."""
    training, validation = list_path(own, columns, "train"), list_path(own, columns, "val")
    if not validation.is_file() and not dry_run():
        validation = training
    words = [*settings, f"DATASET_PATH={own.dataset_path}"]
    if model == "FastPitch" and own.dataset_path and (own.dataset_path / SPEAKERS).is_file():
        words.insert(0, "NUM_SPEAKERS=auto")
    words += [f"AUDIO_CONFIG={own.audio_config}"] if own.audio_config else []
    words += [f"TRAIN_FILELIST={training}", f"VAL_FILELIST={validation}"]
    script = {"FastPitch": "train", "Tacotron2": "train_tacotron2", "HiFi-GAN": "train_lj22khz"}[model]
    launch.print_next(what, [*words, "bash", f"scripts/{script}.sh"])


def _download(source: str, folder: Path, member: str, checksum: str | None) -> None:
    """Make ``folder`` what the folder with ``member`` in an archive is, unless it is there."""
    if (folder if folder.name == member else folder / member).exists():
        print(f"{folder} exists already")
        return
    options = given(source=source, output=folder, member=member, sha256=checksum)
    run_or_print([python(), "-m", "scripts.download_models", "corpus", *options])


def _print_script(name: str, value: Path, default: Path, script: str) -> None:
    launch.print_next("", [*([] if value == default else [f"{name}={value}"]), "bash", f"scripts/{script}.sh"])


@script({"archive checksum dataset_path": ()}, defaults=_LJSPEECH)
def download_dataset(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Download LJSpeech, or another corpus in its layout."""
    corpus = own.dataset_path or train.find_ljspeech()
    checksum = own.checksum or (None if environ.get("DATASET_SHA256") == "" else _LJSPEECH_SHA256)
    _download(own.archive, corpus, "metadata.csv", checksum)
    _print_script("DATASET_PATH", corpus, Path("LJSpeech-1.1"), "prepare_dataset")
    launch.print_next("for a vocoder, as the originals have it", ["bash", "scripts/download_models.sh", "waveglow"])


@script({"source subsets dataset_path verify": ()})
def download_librispeech(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Download subsets of LibriSpeech."""
    corpus = own.dataset_path or train.LIBRISPEECH_FOLDER
    for subset in own.subsets or LIBRISPEECH:
        _download(f"{own.source}/{subset}.tar.gz", corpus / subset, subset, LIBRISPEECH[subset] if own.verify else None)
    _print_script("DATASET_PATH", corpus, train.LIBRISPEECH_FOLDER, "preprocess_librispeech")


@script({"archive checksum dataset": ()}, defaults=_FSDD)
def download_fsdd(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Download the Free Spoken Digit Dataset."""
    _download(own.archive, Path(own.dataset) / "recordings", "recordings", own.checksum)
    _print_script("DATASET", Path(own.dataset), Path("fsdd"), "train_digits")


@script({}, removed="CMUDICT_DIR")
def download_cmudict(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Say how many words the CMU pronouncing dictionary has."""
    print(f"the package cmudict has {len(load_dictionary())} words; nothing to download")


@script({})
def import_recordings(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Make a corpus of recordings and transcripts as people have them."""
    exec_or_print([python(), "-m", "scripts.import_recordings", *words])


@script({"dataset_path subsets speeds n_workers": ()})
def preprocess_librispeech(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Turn LibriSpeech into wav files and manifests."""
    options = [own.dataset_path or train.LIBRISPEECH_FOLDER, *given(n_workers=own.n_workers)]
    options += ["--subsets", *own.subsets] if own.subsets else []
    options += ["--speeds", *own.speeds] if own.speeds else []
    exec_or_print([python(), "-m", "scripts.datasets.preprocess_librispeech", *options, *words])
