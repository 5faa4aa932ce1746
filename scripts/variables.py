"""The variables of the scripts that are not of an option of a command, each declared once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.options import option

LIBRISPEECH = {  # subset -> SHA-256 of its archive
    "train-clean-100": "d4ddd1d5a6ab303066f14971d768ee43278a5f2a0aa43dc716b0e64ecbbbf6e2",
    "train-clean-360": "146a56496217e96c14334a160df97fffedd6e0a04e66b9c5af0d40be3c792ecf",
    "train-other-500": "ddb22f27f96ec163645d53215559df6aa36515f26e01dd70798188350adcb6d2",
    "dev-clean": "76f87d090650617fca0cac8f88b9416e0ebf80350acb97b343a85fa903728ab3",
    "dev-other": "12661c48e8c3fe1de2c1caa4c3e135193bfb1811584f11f569dd12645aa84365",
    "test-clean": "39fde525e59672dc6d1551919b1478f724438a95aa55f874b576be21967e6c23",
    "test-other": "d09c181bba5cf717b3dee7d4d592af11a3ee3a09e08ae025c5506f6ebe961c29",
}
_PRECISIONS = ("fp32", "tf32", "float16", "bfloat16")
_STAGES = ("data", "vocoder", "voice")
HELD_BACK = tuple(f"LJ001-{number:04}" for number in range(73, 81))  # clips of LJSpeech that no shipped voice knows


def _variable(names: str, default: Any, help: str, **known: Any) -> Any:
    """A field that is a variable of scripts, named as here and then as in the originals.

    ``known`` are fields of `common.options.Option`.
    """
    name, *published = names.split()
    return option(default, help, variable=name, published=tuple(published), **known)


def _count(names: str, default: Any, help: str, **known: Any) -> Any:
    """A variable that is a positive number, or several."""
    return _variable(names, default, help, **{"least": 1, "most": 9_999_999} | known)


@dataclass(frozen=True)
class Variables:
    """All of them; a script reads those whose fields it names, with defaults of its own where it has others."""

    model: str = ""  # as chosen by the script

    num_gpus: str = _variable("NUM_GPUS", "auto", "GPUs of each machine; auto: all there are; 0: the CPU")
    cpu: bool = _variable("CPU", False, "older name of NUM_GPUS=0")
    cuda: bool | None = _variable("CUDA", None, "older name of NUM_GPUS=1; false: of NUM_GPUS=0")
    amp: str = _variable("AMP", "both", "mixed precision: true, false, or both, which adds the speed-up")
    nnodes: int = _count("NNODES", 1, "machines")
    node_rank: int | None = _count("NODE_RANK", None, "number of this machine; empty: they agree on it", least=0)
    master_addr: str | None = _variable("MASTER_ADDR", None, "host name of the first machine")
    port: int | None = _count("PORT", None, "where the processes meet on the first machine", most=65535)
    run_id: str | None = _variable("RUN_ID", None, "name that several machines of a run share")
    world_size: int | None = _count("WORLD_SIZE", None, "processes, where they are started from outside")
    train_script: str = _variable("TRAIN_SCRIPT", "scripts/train.sh", "script whose MODEL is trained, instead of MODEL")

    # Corpora and lists
    dataset_path: Path | None = _variable("DATASET_PATH DATASET_DIR DATA_DIR", None, "corpus; empty: the published one")
    dataset: str = _variable("DATASET", "fsdd", "folder of the Free Spoken Digit Dataset, or a subset of LibriSpeech")
    datasets: tuple[str, ...] = _variable("DATASETS DATASET", (), "subsets of LibriSpeech")
    name: str = _variable("NAME", "ljs", "first part of the lists' names; ljs: the customary split of LJSpeech-1.1")
    filelists: Path = _variable("FILELISTS", Path("filelists"), "folder of the lists")
    train_filelist: Path | None = _variable("TRAIN_FILELIST DATASET_FILELIST", None, "training list, instead of NAME's")
    val_filelist: Path | None = _variable("VAL_FILELIST", None, "list to validate on")
    train_manifests: tuple[Path, ...] = _variable("TRAIN_MANIFESTS TRAIN_MANIFEST", (), "lists or folders to train on")
    val_manifest: tuple[Path, ...] = _variable("VAL_MANIFEST VAL_MANIFESTS", (), "lists or folders to validate on")
    manifest: Path | None = _variable("MANIFEST", None, "manifest or list to transcribe")
    manifests: tuple[Path, ...] = _variable("MANIFESTS", (), "lists or manifests to transcribe, instead of DATASETS")
    phrases: Path | None = _variable("PHRASES FILELIST", None, "list to speak")
    output_dir: Path | None = _variable("OUTPUT_DIR", None, "folder for the results; empty: one in ./output")
    language: str | None = _variable("LANGUAGE", None, "of the texts, a tag of eSpeak NG; empty: as they look")
    features: str = _variable(
        "FEATURES",
        "auto",
        "true: features of FastPitch; mels: mel-spectrograms; false: lists; auto: the first that can be made",
        choices=("auto", "mels", "true", "false"),
    )
    audio_config: Path | None = _variable("AUDIO_CONFIG", None, "mel settings; empty: audio.json in DATASET_PATH")
    archive: str = _variable("DATASET_ARCHIVE", "", "URL or path")
    checksum: str | None = _variable("DATASET_SHA256", None, "SHA-256 of the archive; empty: not verified")
    source: str = _variable("LIBRISPEECH_SOURCE", "https://www.openslr.org/resources/12", "URL or folder of archives")
    subsets: tuple[str, ...] = _variable("SUBSETS", (), "of LibriSpeech; empty: all", choices=tuple(LIBRISPEECH))
    verify: bool = _variable("VERIFY", True, "false: checksums do not matter")
    speeds: tuple[float, ...] = _variable("SPEEDS", (), "of copies of the training subsets", above=0)
    n_workers: int | None = _count("N_WORKERS", None, "processes, by default one for each core")
    sequences: int | None = _count("SEQUENCES CLIPS", None, "recordings of noise; empty: for 1 + STEPS updates")
    max_duration: float | None = _variable("MAX_DURATION", None, "s, of recordings; empty: as MODEL_CONFIG", above=0)

    # Checkpoints
    fastpitch: Path | None = _variable("FASTPITCH", None, "checkpoint of the voice; empty: the newest")
    tacotron2: Path | None = _variable("TACOTRON2", None, "checkpoint of a voice, instead of FASTPITCH")
    hifigan: str | None = _variable("HIFIGAN", None, "checkpoint of the vocoder; empty: one that fits, or the newest")
    waveglow: str | None = _variable("WAVEGLOW", None, "checkpoint of a vocoder, instead of HIFIGAN")
    harmonic: str | None = _variable("HARMONIC", None, "checkpoint of a vocoder, instead of HIFIGAN")
    jasper: Path | None = _variable("JASPER CHECKPOINT", None, "recognizer; empty: the newest")
    tacotron2_checkpoint: Path | None = _variable(
        "TACOTRON2_CHECKPOINT TACO_CH", None, "makes durations; empty: downloaded"
    )
    model_config: Path | None = _variable("MODEL_CONFIG", None, "YAML file that configures Jasper")
    input_mels_dir: Path | None = _variable("INPUT_MELS_DIR FINE_TUNE_DIR", None, "mels; empty: data/mels-NAME")

    # Training
    bs: int | None = _count("BS BATCH_SIZE", None, "utterances of a micro-batch; BATCH_SIZE of Jasper: of an update")
    accumulation: int | None = _count("GRAD_ACCUMULATION GRAD_ACCUMULATION_STEPS", None, "micro-batches in an update")
    epochs: int | None = _count("EPOCHS", None, "epochs in total")
    learned_alignment: str = _variable(
        "LEARNED_ALIGNMENT",
        "auto",
        "true: FastPitch 1.1; false: 1.0, from a list of durations; auto: 1.0 where the list gives durations",
        choices=("auto", "true", "false"),
    )
    speaker: str | None = _variable("SPEAKER", None, "the new voice's name; by default that of the folder")
    held_back: tuple[str, ...] = _variable("HELD_BACK", HELD_BACK, "its clips that are not trained on")
    voices: Path = _variable("VOICES", Path("voices"), "folder for the two files")
    stages: tuple[str, ...] = _variable("STAGES", _STAGES, "what to do", choices=_STAGES)
    vocoder_epochs: int = _count("VOCODER_EPOCHS", 100, "epochs of the vocoder")
    base_epochs: int = _count("BASE_EPOCHS", 12, "epochs of the voice on embedded speakers and the recordings")
    voice_epochs: int = _count("VOICE_EPOCHS", 200, "epochs of its fine-tuning")

    # Speaking, and measuring
    batch_size: int = _count("BATCH_SIZE BS", 32, "utterances of a batch")
    api_key: str | None = _variable("SPEECH_API_KEY", None, "key that clients must send; empty: they need none")
    batch_sizes: tuple[int, ...] = _count(
        "BS_SEQUENCE BS BATCH_SIZE BATCH_SIZE_SEQ", (), "batch sizes, or micro-batches'"
    )
    durations: tuple[float, ...] = _variable("MAX_DURATION_SEQ", (2.0, 7.0, 16.7), "s, of recordings", above=0)
    iterations: int = _count("ITERATIONS NUM_STEPS", 500, "batches that are measured, about")
    audio: bool = _variable("AUDIO", True, "false: measure the text-to-mel model only")
    gpu_numbers: str = _variable(
        "NUM_GPUS NUM_GPUS_SEQUENCE NUM_GPUS_SEQ",
        "auto",
        "GPUs, one number a run; auto: all there are, of Jasper 1, 4 and 8; 0: the CPU",
    )
    largest_batch: bool = _variable("LARGEST_BATCH", False, "search for the largest batch instead of training")
    smallest: int = _count("BATCH_SIZE", 1, "batch that the search begins with")
    max_batch_size: int | None = _count("MAX_BATCH_SIZE", None, "where it ends; empty: where memory does, on the CPU 8")
    wn_channels: int = _count("WN_CHANNELS", 512, "of WaveGlow, in the search")
    precisions: tuple[str, ...] = _variable("PRECISIONS", (), "several instead of AMP", choices=_PRECISIONS)
    steps: int = _count("STEPS", 5, "updates of an epoch on noise after its first")

    @property
    def voice(self) -> Path | None:
        """The checkpoint of the voice."""
        return self.tacotron2 or self.fastpitch

    @property
    def vocoder(self) -> str | None:
        """The checkpoint of the vocoder."""
        return self.hifigan or self.waveglow or self.harmonic
