"""Set up FastPitch training: lists, mels, text, architecture and schedule."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.checkpoints.checkpoint import Checkpoint
from common.config import AudioConfig
from common.data.filelist import FilelistEntry
from common.errors import shown
from common.text.cleaners import ENGLISH_V3
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.text.languages import refuse_rewritten_letters
from common.text.options import options_of_text, text_config, written_options
from common.text.symbols import EDGE_SILENCE, SILENCES, canonical_phone, get_symbol_table
from common.text.teacher import text_of_teacher
from common.training.optim import Optimization, inverse_sqrt_schedule
from common.training.settings import MelSource, TrainingRequest, TrainingSetup, stored_mels
from fastpitch.arg_parser import SIZES, TrainingOptions
from fastpitch.config import ModelConfig
from fastpitch.data_function import read_list, speaker_names, with_labels
from fastpitch.fine_tuning import InitialVoice, set_up_networks, voice_of


def find_defaults(given: Mapping[str, Any], initial: tuple[Path, Checkpoint] | None) -> Mapping[str, Any]:
    """Return default options: the initial voice's architecture and text front end, or those of --size."""
    if initial is None:
        return SIZES[given["size"]]
    voice = voice_of(*initial)
    of_data = ("n_mel_channels", "n_speakers")
    architecture = {name: value for name, value in vars(voice.checkpoint.config).items() if name not in of_data}
    return architecture | options_of_text(voice.text)


def set_up(options: TrainingOptions, request: TrainingRequest) -> TrainingSetup:
    """Set up training; after the warm-up, the learning rate is divided by sqrt(update), as published."""
    run, voice = request.run, None if request.initial is None else voice_of(*request.initial)
    learned = options.architecture.learned_alignment
    entries = read_list(run.dataset_path, run.training_files, learned_alignment=learned)
    known, own = ((), None) if voice is None else (voice.speaker_names, voice.text)
    text = text_config(options.text, speakers=speaker_names(entries, options.n_speakers, known=known), initial=own)
    if voice is not None and request.resumed is None:  # drops unknown symbols, but refuses another language
        refuse_rewritten_letters({one.where: one.fields["text"] for one in entries}, text.of_transcripts)
    notes = []
    if voice is None and "durations" in entries[0].fields:
        durations = (run.dataset_path / entries[0].fields["durations"]).parent
        if (taught := text_of_teacher(text, durations)) is not None:
            text, unknown_symbols = taught
            said = written_options(text)
            if unknown_symbols == "drop":
                said += " --unknown-symbols drop"
                options = replace(options, text=replace(options.text, unknown_symbols="drop"))
            notes.append(f"text is read as by the teacher of {durations}, whose durations match the symbols of {said}")
    if voice is None and (of_phones := _read_as_phones(text, entries)) is not None:
        text = of_phones
        notes.append(f"the lists have phones: --input-type phone --symbol-set {text.symbol_set}")
    text = replace(text, labels=() if voice is None else voice.text.labels)
    if text.input_type == "phone" and "durations" in entries[0].fields:
        validated = read_list(run.dataset_path, run.validation_files, learned_alignment=learned)
        text = with_labels(text, [*entries, *validated], run.dataset_path)
    if text.labels:
        notes.append(f"{len(text.labels)} labels are added to symbol set {text.symbol_set}: {shown(text.labels)}")
    audio = _mels(request, "wav" in entries[0].fields, voice)
    options = replace(options, architecture=_architecture(options, audio, text))
    schedule = inverse_sqrt_schedule(run.learning_rate, warmup_steps=options.warmup_steps)
    optimization = Optimization(schedule)
    return TrainingSetup(options, audio, text, optimization, notes=notes, set_up_networks=set_up_networks)


def _read_as_phones(text: TextConfig, entries: Sequence[FilelistEntry]) -> TextConfig | None:
    """Return a front end for lists of phones, such as TextGrids', if no option says how to read text."""
    words = {word for entry in entries for word in canonical_phone(entry.fields["text"]).split()}
    is_default = text == TextConfig(cleaners=(ENGLISH_V3,), speakers=text.speakers)
    if not is_default or not any(word in SILENCES or word[-1].isdigit() for word in words):
        return None
    fitting = [name for name in ("arpabet", "ipa") if all(word in get_symbol_table(name) for word in words)]
    starts = (entry.fields["text"].partition(" ")[0] for entry in entries if "durations" in entry.fields)
    if EDGE_SILENCE in starts:
        fitting.append("ipa")  # an aligner's phones; labels that the set lacks are added
    return replace(text, input_type="phone", symbol_set=fitting[0], cleaners=()) if fitting else None


def _mels(request: TrainingRequest, lists_recordings: bool, voice: InitialVoice | None) -> AudioConfig:
    """Return the mel configuration: as stored or, for recordings, that of the initial voice or the corpus."""
    stored = None if lists_recordings else stored_mels(request.run.dataset_path / "mels")
    if voice is None:
        return request.mels(stored)
    made = MelSource(f"--from-checkpoint {voice.path}", voice.checkpoint.audio, voice.checkpoint.assumed)
    audio = request.mels(made if lists_recordings else stored)
    MelSource("these options and data", audio).check_agreement(made)
    return audio


def _architecture(options: TrainingOptions, audio: AudioConfig, text: TextConfig) -> ModelConfig:
    front_end = TextFrontEnd(text)
    n_speakers = options.n_speakers or max(1, len(text.speakers))
    per_speaker = options.architecture.learned_alignment and n_speakers > 1
    values: dict[str, Any] = {"n_speakers": n_speakers, "pitch_statistics_per_speaker": per_speaker}
    values |= {"symbol_type": text.input_type, "n_symbols": front_end.n_symbols, "padding_idx": front_end.padding_id}
    return replace(options.architecture, n_mel_channels=audio.n_mels, **values)


def model_config(
    options: TrainingOptions, audio: AudioConfig, text: TextConfig, *, base: ModelConfig | None
) -> ModelConfig:
    """Return the options' architecture; speakers share pitch statistics if they do in the resumed ``base``."""
    if base is None:
        return options.architecture
    return replace(options.architecture, pitch_statistics_per_speaker=base.pitch_statistics_per_speaker)
