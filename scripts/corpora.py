"""Scripts that download corpora and prepare them: prepare_dataset, download_..., preprocess_librispeech."""

import os
from dataclasses import replace
from pathlib import Path

from common.errors import InputError
from common.files import write_text
from common.registry import get_model
from scripts import train
from scripts.datasets.make_filelists import SPLITS, ListOptions
from scripts.launch import (
    GPU,
    Script,
    count_gpus,
    cuda,
    dry_run,
    exec_or_print,
    given,
    note,
    print_next,
    python,
    require,
    run_or_print,
)
from scripts.speaking import downloaded
from scripts.train import list_path
from scripts.variables import LIBRISPEECH, Variables

_LJSPEECH = "https://data.keithito.com/data/speech/LJSpeech-1.1.tar.bz2"
_LJSPEECH_SHA256 = "be1a30453f28eb8dd26af4101ae40cbf2c50413b1bb21936cbcdc6fae3de8aa5"
_FSDD = "https://github.com/Jakobovski/free-spoken-digit-dataset/archive/refs/tags/v1.0.10.tar.gz"


def prepare_dataset(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Split a corpus into lists, and extract its features."""
    corpus = require(own.dataset_path or train.find_ljspeech(), "no such folder; run scripts/download_dataset.sh")
    own, features = replace(own, dataset_path=corpus), own.features
    has_text = (corpus / "metadata.csv").is_file() or list_path(own, "audio_text", "train").is_file()
    if features == "auto" and not (own.tacotron2_checkpoint or words or has_text) and corpus.is_dir():
        note(f"note: {corpus} has no metadata.csv: lists of recordings alone are made")
        features = "false"
    own, features, durations = _choose_durations(own, corpus, features)
    _make_lists(own, corpus, features, environ)
    own = _describe_mels(own, corpus, words)
    if features != "false":
        _extract(own, corpus, features, [*durations, *cuda(own), *words])
    if features != "true" and (list_path(own, "audio_text", "train").is_file() or dry_run()):
        _print_next(own, "for a voice that finds its durations", "FastPitch", "audio_text")
    _print_next(own, "for a vocoder", "HiFi-GAN", "audio")


def _choose_durations(own: Variables, corpus: Path, features: str) -> tuple[Variables, str, list[str | Path]]:
    """Where durations come from: the variables with the Tacotron 2 of them, the features, and options that make them.

    Raises:
        InputError: FEATURES=true, and nothing gives durations.
    """
    tacotron2, options = own.tacotron2_checkpoint, given()
    stored = any(corpus.glob("durations/*.pt"))
    from_teacher = (corpus / "durations/follower.json").is_file()
    if features == "mels":
        return own, features, ["--extract-mels"]
    if tacotron2 is None and any(corpus.glob("TextGrid/*.TextGrid")):
        options = ["--extract-durs-from-textgrids"]
    elif tacotron2 is None and (from_teacher or not stored) and features != "false":
        tacotron2 = next(iter(downloaded("Tacotron2")), None)
        if tacotron2:
            note(f"note: durations from {tacotron2}, symbols that it lacks dropped; FEATURES=false takes none")
        elif not stored:
            missing = f"no durations: put TextGrids into {corpus}/TextGrid, set TACOTRON2_CHECKPOINT to a Tacotron 2, "
            missing += "or download one (bash scripts/download_models.sh tacotron2)"
            if features == "true":
                raise InputError(missing)
            note(f"note: {missing}; without them FastPitch learns its alignment (1.1), and a vocoder needs none")
            return own, "mels", ["--extract-mels"]
    if tacotron2:
        options = [*options, "--extract-durations", "--tacotron2-checkpoint", tacotron2]
    options = ["--extract-mels", "--extract-pitch-char", *options]
    return replace(own, tacotron2_checkpoint=tacotron2), "true" if features == "auto" else features, options


def _make_lists(own: Variables, corpus: Path, features: str, environ: dict[str, str]) -> None:
    """Split the corpus; where lists of texts are there already, lists of recordings are their first columns."""
    if list_path(own, "audio_text", "train").is_file():
        for split in SPLITS:
            texts, recordings = list_path(own, "audio_text", split), list_path(own, "audio", split)
            if texts.is_file() and not recordings.is_file() and not dry_run():
                lines = texts.read_text(encoding="utf-8").splitlines()
                write_text(recordings, "".join(line.partition("|")[0] + "\n" for line in lines))
    elif features != "false" or not list_path(own, "audio", "train").is_file():
        options = given(dataset_path=corpus, output=own.filelists, name=own.name)
        if own.name == "ljs" and not any(environ.get(f"{split.upper()}_IDS") for split in SPLITS):
            # Which clips published voices were trained on; a part of the corpus is split alike.
            environ = environ | {f"{split.upper()}_IDS": f"filelists/ljs_{split}_ids.txt" for split in SPLITS}
            options.append("--skip-missing")
        options += SCRIPTS["prepare_dataset"].passed_on(environ)
        run_or_print([python(), "-m", "scripts.datasets.make_filelists", *options])


def _describe_mels(own: Variables, corpus: Path, words: list[str]) -> Variables:
    """Write the settings of the corpus's mels, unless they are there; the variables with their file, if elsewhere."""
    path = own.audio_config or corpus / "audio.json"
    if path.is_file():
        return own
    if own.audio_config is None and corpus.is_dir() and not os.access(corpus, os.W_OK):
        path = own.filelists / f"{own.name}_audio.json"
        own = replace(own, audio_config=path)
        note(f"note: {corpus} cannot be written; what its mels are is in AUDIO_CONFIG={path}")
    if not path.is_file():
        options = given(dataset_path=corpus, output=path, like=own.tacotron2_checkpoint)
        run_or_print([python(), "-m", "scripts.datasets.describe_mels", *words, *options])
    return own


def _extract(own: Variables, corpus: Path, features: str, options: list[str | Path]) -> None:
    """Make mel-spectrograms, and features of FastPitch; prints what trains on them."""
    columns = "mel_text" if features == "mels" else "mel_dur_pitch_text"
    splits = [split for split in SPLITS if list_path(own, "audio_text", split).is_file() or dry_run()]
    if not splits:
        raise InputError(f"{corpus}/metadata.csv: no such file; text-to-mel models need transcripts")
    recordings = [list_path(own, "audio_text", split) for split in splits]
    lists = [list_path(own, columns, split) for split in splits]  # the first one's pitch statistics normalize all
    files = ["--wav-text-filelist", *recordings, "--output-meta-file", *lists, *given(audio_config=own.audio_config)]
    run_or_print([python(), "extract_mels.py", "--dataset-path", corpus, *files, *options])
    settings = []  # by which train.sh reads the text; a Tacotron 2 says its own
    if "--extract-durs-from-textgrids" in options:
        settings = ["INPUT_TYPE=phone"]
        if lists[0].is_file():
            phones = [line.split("|")[3] for line in lists[0].read_text(encoding="utf-8").splitlines()]
            settings.append(f"SYMBOL_SET={'arpabet' if all(map(str.isascii, phones)) else 'ipa'}")
    if features == "mels":
        _print_next(own, "for Tacotron 2", "Tacotron2", columns)
    else:
        _print_next(own, "", "FastPitch", columns, *settings)


def _print_next(own: Variables, what: str, model: str, columns: str, *settings: str) -> None:
    """Print the command that trains on the lists of those columns."""
    training, validation = list_path(own, columns, "train"), list_path(own, columns, "val")
    if not validation.is_file() and not dry_run():
        validation = training
    words = [*settings, f"DATASET_PATH={own.dataset_path}"]
    words += [f"AUDIO_CONFIG={own.audio_config}"] if own.audio_config else []
    words += [f"TRAIN_FILELIST={training}", f"VAL_FILELIST={validation}"]
    if training.is_file():  # a short list asks for smaller batches than training takes by default
        recipe = get_model(model).training.recipe
        clips, gpus = len(training.read_text(encoding="utf-8").splitlines()), max(count_gpus(), 1)
        if clips < recipe.batch_size * recipe.gradient_accumulation_steps * gpus:
            words.append(f"BS={max(1, clips // gpus)}")
    script = {"FastPitch": "train", "Tacotron2": "train_tacotron2", "HiFi-GAN": "train_lj22khz"}[model]
    print_next(what, [*words, "bash", f"scripts/{script}.sh"])


def _download(source: str, folder: Path, member: str, checksum: str | None) -> None:
    """Make ``folder`` what the folder with ``member`` in an archive is."""
    options = given(output=folder, member=member, sha256=checksum)
    run_or_print([python(), "-m", "scripts.datasets.download", source, *options])


def _print_script(name: str, value: Path, default: str, script: str) -> None:
    own = [] if value == Path(default) else [f"{name}={value}"]
    print_next("", [*own, "bash", f"scripts/{script}"])


def download_ljspeech(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Download LJSpeech, or another corpus in its layout."""
    corpus = own.dataset_path or train.find_ljspeech()
    if (corpus / "metadata.csv").is_file():
        print(f"{corpus} exists already")
    else:
        checksum = own.checksum or (None if environ.get("DATASET_SHA256") == "" else _LJSPEECH_SHA256)
        _download(own.archive, corpus, "metadata.csv", checksum)
        if dry_run():
            return
        print(f"{corpus}: {len((corpus / 'metadata.csv').read_text(encoding='utf-8').splitlines())} clips")
    _print_script("DATASET_PATH", corpus, "LJSpeech-1.1", "prepare_dataset.sh")


def download_librispeech(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Download subsets of LibriSpeech."""
    corpus = own.dataset_path or train.LIBRISPEECH_FOLDER
    for subset in own.subsets or LIBRISPEECH:
        folder = corpus / subset
        if folder.is_dir():
            print(f"{folder} exists already")
            continue
        _download(f"{own.source}/{subset}.tar.gz", folder, subset, LIBRISPEECH[subset] if own.verify else None)
        if not dry_run():
            print(f"{folder}: {sum(1 for _ in folder.rglob('*.flac'))} recordings")
    if not dry_run():
        _print_script("DATASET_PATH", corpus, str(train.LIBRISPEECH_FOLDER), "preprocess_librispeech.sh")


def download_digits(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Download the Free Spoken Digit Dataset."""
    recordings = Path(own.dataset) / "recordings"
    if recordings.is_dir():
        print(f"{recordings} exists already")
    else:
        _download(own.archive, recordings, "recordings", own.checksum)
    if not dry_run():
        print(f"{recordings}: {sum(1 for _ in recordings.glob('*.wav'))} recordings")
        _print_script("DATASET", Path(own.dataset), "fsdd", "train_digits.sh")


def preprocess_librispeech(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Turn LibriSpeech into wav files and manifests."""
    options = [own.dataset_path or train.LIBRISPEECH_FOLDER, *given(n_workers=own.n_workers)]
    options += ["--subsets", *own.subsets] if own.subsets else []
    options += ["--speeds", *own.speeds] if own.speeds else []
    exec_or_print([python(), "-m", "scripts.datasets.preprocess_librispeech", *options, *words])


SCRIPTS = {
    "prepare_dataset": Script(
        prepare_dataset,
        {f"{GPU} dataset_path name filelists features tacotron2_checkpoint audio_config": (), ListOptions: ()},
    ),
    "download_dataset": Script(
        download_ljspeech, {"archive checksum dataset_path": ()}, defaults={"": f"DATASET_ARCHIVE={_LJSPEECH}"}
    ),
    "download_librispeech": Script(download_librispeech, {"source subsets dataset_path verify": ()}),
    "download_fsdd": Script(
        download_digits, {"archive checksum dataset": ()}, defaults={"": f"DATASET_ARCHIVE={_FSDD}"}
    ),
    "preprocess_librispeech": Script(preprocess_librispeech, {"dataset_path subsets speeds n_workers": ()}),
}
