"""Initialize the networks of a new training run: weights from another voice, and pitch statistics."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from common.audio.pitch import read_pitch_statistics
from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.loading import load_weights
from common.distributed import Gather
from common.errors import CheckpointError, InputError, shown
from common.nn.layers import rows_by_name
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from fastpitch.arg_parser import TrainingOptions
from fastpitch.data_function import FastPitchDataset, measure_pitch
from fastpitch.loss_function import sums_of_errors
from fastpitch.model import FastPitch

_MEAN_MEL_UTTERANCES = 256  # averaged, approximately, to initialize the output bias: saves about a hundred updates
_CLIPS = 8  # clips of a new speaker used to choose the best-fitting known speaker
_SYMBOLS = "encoder.word_emb.weight"
_SPEAKERS = "speaker_emb.weight"
_OPTIONAL_PARTS = ("attention", "energy_predictor", "energy_emb")


@dataclass(frozen=True)
class InitialVoice:
    """The checkpoint of ``--from-checkpoint``, without its training state."""

    path: Path
    text: TextConfig
    checkpoint: Checkpoint

    @property
    def speaker_names(self) -> tuple[str, ...]:
        """Speaker names in order of their ids; the name of an unnamed speaker is their number."""
        names, n_speakers = self.text.speakers, self.checkpoint.config.n_speakers
        return names[:1] if n_speakers == 1 else (*names, *map(str, range(len(names), n_speakers)))


def voice_of(path: Path, checkpoint: Checkpoint) -> InitialVoice:
    """Return the voice in a checkpoint; raises CheckpointError if its symbols are unknown."""
    if checkpoint.text is None or checkpoint.text.input_type == "pf":
        raise CheckpointError(f"{path}: does not name its symbols, which fine-tuning needs")
    return InitialVoice(path, checkpoint.text, checkpoint)


def set_up_networks(
    networks: Mapping[str, FastPitch],
    options: TrainingOptions,
    *,
    text: TextConfig,
    training_set: FastPitchDataset,
    validation_set: FastPitchDataset,
    gather: Gather,
    initial: tuple[Path, Checkpoint] | None = None,
    new: bool = True,
) -> list[str]:
    """Set a ``new`` model's weights, measure unknown pitch statistics, and normalize both lists with them.

    A model without an initial voice keeps its random weights. Returns lines on what is new; raises InputError if
    statistics are missing or the voice's weights don't fit.
    """
    network, file, learned = networks["fastpitch"], options.pitch_mean_std_file, options.architecture.learned_alignment
    voice = voice_of(*initial) if new and initial is not None else None
    lines = []
    if voice is not None:
        speaking = {entry.fields.get("speaker", "") for entry in training_set.entries}
        lines = [f"starting from the {'EMA ' * voice.checkpoint.has_ema}weights of {voice.path}"]
        lines += start_from(network, voice, text=text, speaking=speaking)
        if (name := "mel_discriminator") in networks and name in voice.checkpoint.networks:
            load_weights({name: networks[name]}, voice.checkpoint.networks, where=str(voice.path))
    if new and (file is not None or not learned):
        network.set_pitch_statistics(read_pitch_statistics(file or _find_pitch_statistics(options)))
    if new and options.mean_mel_bias:
        step = max(1, len(training_set) // _MEAN_MEL_UTTERANCES)
        mels = [training_set.load_mel(index) for index in range(0, len(training_set), step)]
        network.proj.bias.data.copy_(torch.cat(mels, dim=1).mean(dim=1))
    if learned:
        measure_pitch(network, training_set, gather=gather, n_workers=options.num_workers)
        for dataset in (training_set, validation_set):
            dataset.normalize_pitch_as(network)
    return lines if voice is None else lines + start_from_nearest(network, voice, training_set)


def _find_pitch_statistics(options: TrainingOptions) -> Path:
    """Find the training lists' statistics, or the only ones in the dataset, since lists may have been renamed."""
    named = [options.dataset_path / f"pitch_char_stats__{path.stem}.json" for path in options.training_files]
    found = [path for path in named if path.is_file()] or sorted(options.dataset_path.glob("pitch_char_stats__*.json"))
    if len({read_pitch_statistics(path) for path in found}) == 1:
        return found[0]
    there = f"differ: {', '.join(path.name for path in found)}" if found else "no such file"
    advice = "give --pitch-mean-std-file, or run extract_mels.py --extract-pitch-char"
    raise InputError(f"{named[0]}: {there}; {advice}")


def start_from(network: FastPitch, voice: InitialVoice, *, text: TextConfig, speaking: Collection[str]) -> list[str]:
    """Load a voice's weights (EMA if it has them) into a new network with the symbols and speakers of ``text``.

    Known symbols and speakers keep their vectors; new ones get the mean of the others. Speakers missing
    from the training list (``speaking``) keep their pitch statistics. Returns lines on what is new; raises
    CheckpointError if weights don't fit.
    """
    given = (voice.checkpoint.ema or voice.checkpoint.networks)["fastpitch"]
    new = network.state_dict()
    parts_given, parts_new = ({key.split(".")[0] for key in weights} for weights in (given, new))
    absent = [part for part in _OPTIONAL_PARTS if part in parts_new - parts_given]
    lines = [f"{part} is not in {voice.path} and starts from new weights" for part in absent]
    left_out = set(_OPTIONAL_PARTS) - parts_new
    state = {key: value for key, value in given.items() if key.split(".")[0] not in left_out}
    state |= {key: value for key, value in new.items() if key.split(".")[0] in absent}
    before, after = TextFrontEnd(voice.text), TextFrontEnd(text)
    state[_SYMBOLS], new_symbols = rows_by_name(
        given[_SYMBOLS], after.symbols, known=before.symbols, what="symbols", leave_out=before.padding_id
    )
    state[_SYMBOLS][after.padding_id] = 0.0
    lines += new_symbols
    speakers, table = voice.speaker_names, state.pop(_SPEAKERS, None)
    if _SPEAKERS in new and table is not None:
        names = [*text.speakers, *[""] * (len(new[_SPEAKERS]) - len(text.speakers))]
        state[_SPEAKERS], new_speakers = rows_by_name(table, names, known=speakers, what="speakers")
        lines += new_speakers
    elif _SPEAKERS in new:  # with zeros, it sounds like the voice without a table
        state[_SPEAKERS] = torch.zeros_like(new[_SPEAKERS])
        lines.append(f"the vectors of {len(new[_SPEAKERS])} speakers start from zeros")
    for key in ("pitch_mean", "pitch_std"):
        state[key] = torch.zeros_like(new[key])  # unknown
        for place, name in enumerate(text.speakers if len(new[key]) > 1 else ()):
            if name in speakers and name not in speaking:
                state[key][place] = given[key][speakers.index(name) if len(given[key]) > 1 else 0]
    load_weights({"fastpitch": network}, {"fastpitch": state}, where=str(voice.path))
    return lines


@torch.no_grad()
def start_from_nearest(network: FastPitch, voice: InitialVoice, dataset: FastPitchDataset) -> list[str]:
    """Give each new speaker the vector of the known speaker with the lowest mel loss on the new clips; returns lines.

    Does nothing for a single-speaker voice, or without the aligner that teacher forcing needs.
    """
    names, table = dataset.text.speakers, network.speaker_emb
    known = [place for place, name in enumerate(names) if name in voice.speaker_names]
    is_aligned = dataset.has_durations or voice.checkpoint.config.learned_alignment
    if table is None or voice.checkpoint.config.n_speakers == 1 or not (known and is_aligned):
        return []
    lines = []
    network.eval()
    for new in sorted({place for place in dataset.speakers if place is not None} - {*known}):
        clips = [index for index, speaker in enumerate(dataset.speakers) if speaker == new]
        clips = clips[:: -(-len(clips) // _CLIPS)]
        batch = dataset.collate([dataset.draw(index, epoch=0) for index in clips])
        losses = {}
        for place in known:
            spoken = replace(batch, speakers=torch.full((len(clips),), place))
            losses[place] = float(sums_of_errors(network(spoken), spoken)["mel_loss"])
        best = min(known, key=losses.__getitem__)
        table.weight[new] = table.weight[best]
        lines.append(f"{shown(names[new])} starts from {shown(names[best])}, who fits the new clips best")
    network.train()
    return lines
