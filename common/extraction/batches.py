"""Features made in length-bucketed batches of one process: mels, and a teacher's durations, attention and mels."""

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.audio import MelExtractor
from common.audio.options import AudioOptions
from common.checkpoints import LoadedCheckpoint, load_for_inference, open_checkpoint
from common.checkpoints.command_line import check_ema
from common.config import AudioConfig, TextConfig, differences
from common.errors import InputError, OptionError
from common.extraction.features import Extraction, ExtractionPlan, load_item, reason, with_durations, write_feature
from common.extraction.options import ExtractionOptions
from common.files import sha256
from common.registry import GeneratorSpec, ModelSpec
from common.synthesis import MelOutput
from common.text import TextFrontEnd
from common.text.teacher import StoredTeacher

BATCH = 32  # clips
TEACHER_BATCH = 16  # clips; attention's memory grows with frames x symbols
READERS = 4  # threads

# A text-to-mel network under teacher forcing, on the device of its mels: tokens (L,) and mels (n_mels, F) of utterances
# -> mel, frames and alignments, each as if it were alone.
TeacherModel = Callable[[Sequence[Tensor], Sequence[Tensor]], MelOutput]


def mels_on_device(items: Sequence[Extraction], plan: ExtractionPlan, *, device: torch.device) -> Iterator[Extraction]:
    """Write the mel-spectrogram of every item; yields each one with ``mels`` made, or refused."""
    for good, mels, refused in mel_batches(items, plan, device=device, size=BATCH):
        yield from refused
        for item, mel in zip(good, [mel.cpu() for mel in mels]):
            write_feature(plan.path("mels", item.utterance.name), mel[:, slice(*item.kept_frames)])
            yield replace(item, made=(*item.made, "mels"))


@torch.inference_mode()
def mel_batches(
    items: Sequence[Extraction], plan: ExtractionPlan, *, device: torch.device, size: int
) -> Iterator[tuple[list[Extraction], list[Tensor], list[Extraction]]]:
    """Batches of at most ``size`` items, the shortest first, with their mels (n_mels, F) on ``device``.

    Items whose recording cannot be used are returned separately, refused.
    """
    extractor = MelExtractor(plan.audio).to(device)
    items = sorted(items, key=lambda item: item.n_samples)  # little padding
    load = functools.partial(_load, plan=plan)
    with ThreadPoolExecutor(READERS) as readers:
        ahead = [readers.submit(load, item) for item in items[: READERS * size]]
        for start in range(0, len(items), size):
            ahead += [
                readers.submit(load, item) for item in items[start + READERS * size : start + (READERS + 1) * size]
            ]
            loaded = [ahead.pop(0).result() for _ in items[start : start + size]]
            waves = [wave for _, wave in loaded if wave is not None]
            mels: list[Tensor] = []
            if waves:
                lengths = torch.tensor([len(wave) for wave in waves], device=device)
                padded = extractor(pad_sequence(waves, batch_first=True).to(device), lengths)
                mels = [mel[:, : extractor.n_frames(len(wave))] for mel, wave in zip(padded, waves)]
            good, refused = ([item for item, wave in loaded if (wave is None) == bad] for bad in (False, True))
            yield good, mels, refused


def _load(item: Extraction, plan: ExtractionPlan) -> tuple[Extraction, Tensor | None]:
    """An item with its samples, or refused and without."""
    try:
        return item, load_item(item, plan)
    except InputError as error:
        return replace(item, refusal=reason(error, plan)), None


def run_teacher(
    items: Sequence[Extraction], plan: ExtractionPlan, *, model: TeacherModel, device: torch.device
) -> Iterator[Extraction]:
    """Write what is missing of each item; yields each with its durations and what was made, or with its refusal."""
    for good, mels, refused in mel_batches(items, plan, device=device, size=TEACHER_BATCH):
        yield from refused
        if not good:
            continue
        output = model([torch.tensor(item.tokens) for item in good], mels)
        assert output.frames is not None and output.alignments is not None
        durations, attentions, made = (part.float().cpu() for part in (output.frames, output.alignments, output.mel))
        for row, (item, n_frames) in enumerate(zip(good, output.lengths.tolist())):
            n_tokens = len(item.tokens)
            features = {
                "durations": durations[row, :n_tokens].long(),
                "attentions": attentions[row, :n_frames, :n_tokens],
                "mels_teacher": made[row, :, :n_frames],
            }
            if not all(bool(torch.isfinite(tensor).all()) for tensor in features.values()):
                yield replace(item, refusal=f"{item.utterance.wav}: the teacher's output is not finite")
                continue
            missing = tuple(folder for folder in plan.options.taught if folder not in item.kept)
            for folder in missing:
                write_feature(plan.path(folder, item.utterance.name), features[folder])
            item = replace(item, made=missing)
            yield with_durations(item, features["durations"].numpy()) if "durations" in missing else item


def open_teacher(spec: ModelSpec, path: Path, options: ExtractionOptions) -> LoadedCheckpoint:
    """A teacher's checkpoint with the text front end of the options.

    Raises:
        CheckpointError: it is of another model, or lacks the weights that the options ask for.
        OptionError: it is an exported file, or the text front end does not fit.
    """
    loaded = open_checkpoint(path, model=spec.name, ema=options.ema)
    check_trained(loaded, ema=options.ema)
    text = loaded.checkpoint.text or TextConfig()
    cleaners = text.cleaners if options.text_cleaners is None else options.text_cleaners
    text = replace(text, symbol_set=options.symbol_set or text.symbol_set, cleaners=cleaners)
    return replace(loaded, checkpoint=replace(loaded.checkpoint, text=text))


def check_trained(loaded: LoadedCheckpoint, *, ema: bool | None) -> None:
    """Refuse an exported file, which has no teacher forcing, and one without the EMA weights that are asked for."""
    if loaded.exported is not None:
        raise OptionError(f"{loaded.path}: an exported file, which has no teacher forcing; give the checkpoint")
    if ema:
        check_ema([loaded])


def stored_teacher(loaded: LoadedCheckpoint, options: ExtractionOptions) -> StoredTeacher:
    """What is stored with features of the teacher that they are of."""
    text = loaded.checkpoint.text
    assert text is not None
    return StoredTeacher(loaded.spec.name, sha256(loaded.path), text, loaded.ema, options.unknown_symbols)


def load_teacher(loaded: LoadedCheckpoint, device: torch.device) -> TeacherModel:
    """The teacher's network on a device."""
    inference = loaded.spec.inference
    assert isinstance(inference, GeneratorSpec) and inference.teacher is not None
    return functools.partial(inference.teacher, load_for_inference(loaded, device=device)[0])


def mel_settings(options: AudioOptions, *, corpus: Path, teacher: LoadedCheckpoint | None = None) -> AudioConfig:
    """The mels that the options describe; a teacher's checkpoint gives what they leave out, and must agree."""
    base = None if teacher is None or options.audio_config is not None else teacher.checkpoint.audio
    audio = options.config(corpus=corpus, base=base)
    try:
        MelExtractor(audio)  # refuses what cannot be computed
    except InputError as error:
        raise OptionError(str(error)) from error
    if teacher is not None:
        unrecorded = {name: getattr(audio, name) for name in teacher.checkpoint.assumed}
        wanted = replace(teacher.checkpoint.audio, **unrecorded)
        if lines := differences(audio, wanted, names=("options", str(teacher.path))):
            raise OptionError(f"the teacher makes other mel-spectrograms: {'; '.join(lines)}; leave these options out")
    return audio


def warn_dropped(items: Sequence[Extraction], teacher: StoredTeacher) -> None:
    """One warning line that counts the symbols of all transcripts that the teacher's symbol set lacks."""
    front_end = TextFrontEnd(teacher.text, unknown_symbols=teacher.unknown_symbols)
    front_end.dropped = Counter(symbol for item in items for symbol in item.dropped)
    front_end.warn_dropped()
