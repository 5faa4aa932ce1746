"""Scripts that download corpora and prepare them: prepare_dataset, download_..., preprocess_librispeech."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import InputError, OptionError
from common.files import write_text
from common.options import option, read_switch, read_variables
from common.registry import get_model
from scripts import train
from scripts.launch import (
    Gpus,
    Script,
    count_gpus,
    dry_run,
    exec_or_print,
    given,
    note,
    print_next,
    python,
    run_or_print,
    variable,
)
from scripts.train import AllVariables, list_path
from scripts.training import check_name
from scripts.voices import downloaded

_SPLITS = ("train", "val", "test")
_PUBLISHED_PATHS = ("DATASET_DIR", "DATA_DIR")


@dataclass(frozen=True)
class PreparationVariables(Gpus):
    """Variables of prepare_dataset.sh."""

    dataset_path: Path | None = variable(
        "DATASET_PATH", None, "folder of the corpus, by default LJSpeech-1.1", published=_PUBLISHED_PATHS
    )
    name: str = variable("NAME", "ljs", "first part of the lists' names; ljs means the customary split of LJSpeech-1.1")
    filelists: Path = variable("FILELISTS", Path("filelists"), "folder for the lists")
    n_val: int = variable(
        "N_VAL", 100, "clips set aside where the lists are not there yet, and no *_IDS file says which", least=0
    )
    n_test: int = variable("N_TEST", 500, "clips for testing", least=0)
    train_ids: Path | None = variable("TRAIN_IDS", None, "file with one clip's name on each line")
    val_ids: Path | None = variable("VAL_IDS", None, "the same for validation")
    test_ids: Path | None = variable("TEST_IDS", None, "the same for testing")
    features: str = option(
        "auto",
        "true: features of FastPitch; mels: mel-spectrograms; false: lists; auto: the first of these that can be made",
        variable="FEATURES",
    )
    tacotron2: Path | None = variable(
        "TACOTRON2_CHECKPOINT",
        None,
        "a Tacotron 2 whose attention gives the durations; empty: a downloaded one, where there are no durations",
        published=("TACO_CH",),
    )
    audio_config: Path | None = variable(
        "AUDIO_CONFIG", None, "file of the mel settings; by default audio.json in DATASET_PATH, else in FILELISTS"
    )


class _Preparation:
    """A corpus, and what is made of it."""

    def __init__(self, own: PreparationVariables, words: list[str]) -> None:
        self.own, self.words = own, words
        self.corpus = own.dataset_path or train.find_ljspeech()
        self.audio_config = own.audio_config
        self.tacotron2 = own.tacotron2
        self._lists = AllVariables(name=own.name, filelists=own.filelists)
        if not self.corpus.is_dir() and not dry_run():
            raise InputError(f"{self.corpus}: no such folder; run scripts/download_dataset.sh, or set DATASET_PATH")
        self.features = self._wanted()
        self.options: list[str | Path] = ["--extract-mels", "--extract-pitch-char"]
        self.settings: list[str] = []  # by which train.sh reads the text
        self._choose_durations()

    def list_path(self, columns: str, split: str) -> Path:
        """The list of a split, by its columns."""
        return list_path(self._lists, columns, split)

    def _wanted(self) -> str:
        own = self.own
        wanted = own.features
        if wanted not in ("mels", "auto"):
            try:
                wanted = str(read_switch("FEATURES", wanted)).lower()
            except OptionError as error:
                raise OptionError(str(error).replace("expected", "expected mels, auto,")) from None
        if wanted == "mels" and own.tacotron2:
            raise OptionError("FEATURES=mels makes no durations; leave out TACOTRON2_CHECKPOINT or FEATURES")
        if wanted == "false" and self.words:
            raise OptionError(f"{' '.join(self.words)}: for extract_mels.py, which FEATURES=false does not run")
        has_text = (self.corpus / "metadata.csv").is_file() or self.list_path("audio_text", "train").is_file()
        if wanted == "auto" and not (own.tacotron2 or self.words or has_text) and self.corpus.is_dir():
            note(f"note: {self.corpus} has no metadata.csv: lists of recordings alone are made")
            return "false"
        return wanted

    def _choose_durations(self) -> None:
        """Where durations come from, and whether mel-spectrograms alone are made because there are none."""
        stored = any(self.corpus.glob("durations/*.pt"))
        from_teacher = (self.corpus / "durations/follower.json").is_file()
        if self.features == "mels":
            self.options = ["--extract-mels"]
        elif self.tacotron2 is None and any(self.corpus.glob("TextGrid/*.TextGrid")):
            self.options.append("--extract-durs-from-textgrids")
            self.settings = ["INPUT_TYPE=phone"]
        elif self.tacotron2 is None and (from_teacher or not stored) and self.features != "false":
            self.tacotron2 = next(iter(downloaded("Tacotron2")), None)
            if self.tacotron2:
                note(f"note: durations from {self.tacotron2}, symbols that it lacks dropped; FEATURES=false takes none")
            elif not stored:
                self._go_without_durations()
        if self.tacotron2:
            self.options += ["--extract-durations", "--tacotron2-checkpoint", self.tacotron2]
        if self.features == "auto":
            self.features = "true"
        self.options += ["--cuda"] * self.own.number(1)

    def _go_without_durations(self) -> None:
        missing = (
            f"no durations: put TextGrids into {self.corpus}/TextGrid, set TACOTRON2_CHECKPOINT to a Tacotron 2, or "
            "download one (bash scripts/download_models.sh tacotron2)"
        )
        if self.features == "true":
            raise InputError(missing)
        note(f"note: {missing}; without them FastPitch learns its alignment (1.1), and a vocoder needs none")
        self.features, self.options = "mels", ["--extract-mels"]

    def make_lists(self) -> None:
        """Split the corpus; where lists of texts are there already, lists of recordings are their first columns."""
        own = self.own
        if self.list_path("audio_text", "train").is_file():
            for split in _SPLITS:
                texts, recordings = self.list_path("audio_text", split), self.list_path("audio", split)
                if texts.is_file() and not recordings.is_file() and not dry_run():
                    lines = texts.read_text(encoding="utf-8").splitlines()
                    write_text(recordings, "".join(line.partition("|")[0] + "\n" for line in lines))
        elif self.features != "false" or not self.list_path("audio", "train").is_file():
            ids = {"train_ids": own.train_ids, "val_ids": own.val_ids, "test_ids": own.test_ids}
            skipping = []
            if own.name == "ljs" and not any(ids.values()):
                # Which clips published voices were trained on; a part of the corpus is split alike.
                ids = {f"{split}_ids": Path(f"filelists/ljs_{split}_ids.txt") for split in _SPLITS}
                skipping = ["--skip-missing"]
            options = given(dataset_path=self.corpus, output=own.filelists, name=own.name)
            options += given(n_val=own.n_val, n_test=own.n_test, **ids)
            run_or_print([python(), "-m", "scripts.datasets.make_filelists", *options, *skipping])

    def describe_mels(self) -> None:
        """Write the settings of the corpus's mels, unless they are there already."""
        path = self.audio_config or self.corpus / "audio.json"
        if path.is_file():
            return
        if self.audio_config is None and self.corpus.is_dir() and not os.access(self.corpus, os.W_OK):
            path = self.audio_config = self.own.filelists / f"{self.own.name}_audio.json"
            note(f"note: {self.corpus} cannot be written; what its mels are is in AUDIO_CONFIG={path}")
        if not path.is_file():
            options = given(dataset_path=self.corpus, output=path, like=self.tacotron2)
            run_or_print([python(), "-m", "scripts.datasets.describe_mels", *self.words, *options])

    def extract(self) -> None:
        """Make mel-spectrograms, and features of FastPitch; prints what trains on them."""
        what, columns, trainer, model = "", "mel_dur_pitch_text", "scripts/train.sh", "FastPitch"
        if self.features == "mels":
            what, columns, trainer, model = "for Tacotron 2", "mel_text", "scripts/train_tacotron2.sh", "Tacotron2"
        splits = [split for split in _SPLITS if self.list_path("audio_text", split).is_file() or dry_run()]
        if not splits:
            raise InputError(f"{self.corpus}/metadata.csv: no such file; text-to-mel models need transcripts")
        recordings = [self.list_path("audio_text", split) for split in splits]
        lists = [self.list_path(columns, split) for split in splits]  # the first one's pitch statistics normalize all
        options = [*self.options, *given(audio_config=self.audio_config), *self.words]
        files = ["--wav-text-filelist", *recordings, "--output-meta-file", *lists]
        run_or_print([python(), "extract_mels.py", "--dataset-path", self.corpus, *files, *options])
        if self.settings and lists[0].is_file():  # the kind of the TextGrids' phones; a Tacotron 2 says its own
            phones = [line.split("|")[3] for line in lists[0].read_text(encoding="utf-8").splitlines()]
            self.settings.append(f"SYMBOL_SET={'arpabet' if all(map(str.isascii, phones)) else 'ipa'}")
        validation = lists[1] if len(lists) > 1 else lists[0]
        self._print_next(what, self.settings, lists[0], validation, model, trainer)

    def print_next(self) -> None:
        """Print what else trains on the lists."""
        if self.features != "true" and (self.list_path("audio_text", "train").is_file() or dry_run()):
            lists = self._lists_of("audio_text")
            self._print_next("for a voice that finds its durations", [], *lists, "FastPitch", "scripts/train.sh")
        self._print_next("for a vocoder", [], *self._lists_of("audio"), "HiFi-GAN", "scripts/train_lj22khz.sh")

    def _lists_of(self, columns: str) -> tuple[Path, Path]:
        training, validation = self.list_path(columns, "train"), self.list_path(columns, "val")
        return training, validation if validation.is_file() or dry_run() else training

    def _print_next(
        self, what: str, settings: Sequence[str], training: Path, validation: Path, model: str, script: str
    ) -> None:
        corpus = [f"DATASET_PATH={self.corpus}", *([f"AUDIO_CONFIG={self.audio_config}"] if self.audio_config else [])]
        lists = [f"TRAIN_FILELIST={training}", f"VAL_FILELIST={validation}"]
        print_next(what, [*settings, *corpus, *lists, *_fitting_batch(model, training), "bash", script])


def _fitting_batch(model: str, path: Path) -> list[str]:
    """The BS that a training list asks for that is shorter than the batches that training takes by default."""
    if not path.is_file():  # a dry run
        return []
    recipe = get_model(model).training.recipe
    clips, gpus = len(path.read_text(encoding="utf-8").splitlines()), max(count_gpus(), 1)
    fits = clips >= recipe.batch_size * recipe.gradient_accumulation_steps * gpus
    return [] if fits else [f"BS={max(1, clips // gpus)}"]


def prepare_dataset(environ: dict[str, str], words: list[str]) -> None:
    """Split a corpus into lists, and extract its features."""
    own: PreparationVariables = read_variables(PreparationVariables, environ)
    check_name("NAME", own.name)
    preparation = _Preparation(own, words)
    preparation.make_lists()
    preparation.describe_mels()
    if preparation.features != "false":
        preparation.extract()
    preparation.print_next()


def _download(source: str, folder: Path, member: str, checksum: str | None) -> None:
    """Make ``folder`` what the folder with ``member`` in an archive is."""
    options = given(output=folder, member=member, sha256=checksum)
    run_or_print([python(), "-m", "scripts.datasets.download", source, *options])


@dataclass(frozen=True)
class LjspeechVariables:
    """Variables of download_dataset.sh."""

    archive: str = variable(
        "DATASET_ARCHIVE", "https://data.keithito.com/data/speech/LJSpeech-1.1.tar.bz2", "URL or path"
    )
    checksum: str = variable(
        "DATASET_SHA256",
        "be1a30453f28eb8dd26af4101ae40cbf2c50413b1bb21936cbcdc6fae3de8aa5",
        "SHA-256 of the archive; empty: not verified",
    )
    dataset_path: Path | None = variable("DATASET_PATH", None, "folder of the corpus, by default LJSpeech-1.1")


def download_ljspeech(environ: dict[str, str], words: list[str]) -> None:
    """Download LJSpeech, or another corpus in its layout."""
    own: LjspeechVariables = read_variables(LjspeechVariables, environ)
    corpus = own.dataset_path or train.find_ljspeech()
    if (corpus / "metadata.csv").is_file():
        print(f"{corpus} exists already")
    else:
        checksum = None if environ.get("DATASET_SHA256") == "" else own.checksum
        _download(own.archive, corpus, "metadata.csv", checksum)
        if dry_run():
            return
        print(f"{corpus}: {len((corpus / 'metadata.csv').read_text(encoding='utf-8').splitlines())} clips")
    own_path = [] if corpus == Path("LJSpeech-1.1") else [f"DATASET_PATH={corpus}"]
    print_next("", [*own_path, "bash", "scripts/prepare_dataset.sh"])


_LIBRISPEECH = {  # subset -> SHA-256 of its archive
    "train-clean-100": "d4ddd1d5a6ab303066f14971d768ee43278a5f2a0aa43dc716b0e64ecbbbf6e2",
    "train-clean-360": "146a56496217e96c14334a160df97fffedd6e0a04e66b9c5af0d40be3c792ecf",
    "train-other-500": "ddb22f27f96ec163645d53215559df6aa36515f26e01dd70798188350adcb6d2",
    "dev-clean": "76f87d090650617fca0cac8f88b9416e0ebf80350acb97b343a85fa903728ab3",
    "dev-other": "12661c48e8c3fe1de2c1caa4c3e135193bfb1811584f11f569dd12645aa84365",
    "test-clean": "39fde525e59672dc6d1551919b1478f724438a95aa55f874b576be21967e6c23",
    "test-other": "d09c181bba5cf717b3dee7d4d592af11a3ee3a09e08ae025c5506f6ebe961c29",
}


@dataclass(frozen=True)
class LibrispeechVariables:
    """Variables of download_librispeech.sh."""

    source: str = variable(
        "LIBRISPEECH_SOURCE", "https://www.openslr.org/resources/12", "URL or folder that <subset>.tar.gz are in"
    )
    subsets: tuple[str, ...] = variable("SUBSETS", tuple(_LIBRISPEECH), "parts of it", choices=tuple(_LIBRISPEECH))
    dataset_path: Path = variable(
        "DATASET_PATH", Path("LibriSpeech"), "folder of the corpus", published=_PUBLISHED_PATHS
    )
    verify: bool = variable("VERIFY", True, "false: checksums do not matter")


def download_librispeech(environ: dict[str, str], words: list[str]) -> None:
    """Download subsets of LibriSpeech."""
    own: LibrispeechVariables = read_variables(LibrispeechVariables, environ)
    corpus = own.dataset_path
    for subset in own.subsets:
        folder = corpus / subset
        if folder.is_dir():
            print(f"{folder} exists already")
            continue
        _download(f"{own.source}/{subset}.tar.gz", folder, subset, _LIBRISPEECH[subset] if own.verify else None)
        if dry_run():
            continue
        print(f"{folder}: {sum(1 for _ in folder.rglob('*.flac'))} recordings")
    if not dry_run():
        own_path = [] if corpus == Path("LibriSpeech") else [f"DATASET_PATH={corpus}"]
        print_next("", [*own_path, "bash", "scripts/preprocess_librispeech.sh"])


@dataclass(frozen=True)
class DigitsVariables:
    """Variables of download_fsdd.sh."""

    archive: str = variable(
        "DATASET_ARCHIVE",
        "https://github.com/Jakobovski/free-spoken-digit-dataset/archive/refs/tags/v1.0.10.tar.gz",
        "URL or path",
    )
    checksum: str | None = variable("DATASET_SHA256", None, "SHA-256 of the archive; empty: not verified")
    dataset: Path = variable("DATASET", Path("fsdd"), "folder for the dataset")


def download_digits(environ: dict[str, str], words: list[str]) -> None:
    """Download the Free Spoken Digit Dataset."""
    own: DigitsVariables = read_variables(DigitsVariables, environ)
    recordings = own.dataset / "recordings"
    if recordings.is_dir():
        print(f"{recordings} exists already")
    else:
        _download(own.archive, recordings, "recordings", own.checksum)
    if not dry_run():
        print(f"{recordings}: {sum(1 for _ in recordings.glob('*.wav'))} recordings")
        own_path = [] if own.dataset == Path("fsdd") else [f"DATASET={own.dataset}"]
        print_next("", [*own_path, "bash", "scripts/train_digits.sh"])


@dataclass(frozen=True)
class PreprocessingVariables:
    """Variables of preprocess_librispeech.sh."""

    dataset_path: Path = variable(
        "DATASET_PATH", Path("LibriSpeech"), "folder of the corpus", published=_PUBLISHED_PATHS
    )
    subsets: tuple[str, ...] = variable("SUBSETS", (), "empty: all that are there")
    speeds: tuple[float, ...] = variable("SPEEDS", (), "of copies of the training subsets", above=0)
    n_workers: int | None = variable("N_WORKERS", None, "processes, by default one for each core", least=1, most=9999)


def preprocess_librispeech(environ: dict[str, str], words: list[str]) -> None:
    """Turn LibriSpeech into wav files and manifests."""
    own: PreprocessingVariables = read_variables(PreprocessingVariables, environ)
    options = [own.dataset_path, *given(n_workers=own.n_workers or os.cpu_count())]
    options += ["--subsets", *own.subsets] if own.subsets else []
    options += ["--speeds", *own.speeds] if own.speeds else []
    exec_or_print([python(), "-m", "scripts.datasets.preprocess_librispeech", *options, *words])


SCRIPTS = {
    "prepare_dataset": Script(prepare_dataset, {PreparationVariables: ()}),
    "download_dataset": Script(download_ljspeech, {LjspeechVariables: ()}),
    "download_librispeech": Script(download_librispeech, {LibrispeechVariables: ()}),
    "download_fsdd": Script(download_digits, {DigitsVariables: ()}),
    "preprocess_librispeech": Script(preprocess_librispeech, {PreprocessingVariables: ()}),
}
