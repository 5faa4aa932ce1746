"""Set up Tacotron 2 training: mels, text, architecture and schedule."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from common.checkpoints.checkpoint import Checkpoint
from common.config import AudioConfig
from common.errors import OptionError
from common.nn.layers import rows_by_name
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.text.options import options_of_text, text_config
from common.training.optim import Optimization, Schedule
from common.training.settings import TrainingRequest, TrainingSetup, stored_mels
from tacotron2.arg_parser import AMP_FACTOR, FACTOR, TrainingOptions
from tacotron2.config import ModelConfig

_SYMBOLS = "embedding.weight"


def find_defaults(given: Mapping[str, Any], initial: tuple[Path, Checkpoint] | None) -> Mapping[str, Any]:
    """Return the initial checkpoint's architecture and text front end as default options."""
    if initial is None:
        return {}
    _, checkpoint = initial
    text = {} if checkpoint.text is None else options_of_text(checkpoint.text)
    return {name: value for name, value in vars(checkpoint.config).items() if name != "n_mel_channels"} | text


def set_up(options: TrainingOptions, request: TrainingRequest) -> TrainingSetup:
    """Set up training on the corpus's mels or, with --load-mel-from-disk, stored mels, with an annealed rate."""
    if options.text.input_type == "pf":
        raise OptionError("--input-type pf is not supported by Tacotron 2; expected char or phone")
    run = request.run
    stored = stored_mels(run.dataset_path / "mels") if options.load_mel_from_disk else None
    factor = options.anneal_factor or (AMP_FACTOR if request.computing.amp else FACTOR)
    schedule = annealing_schedule(run.learning_rate, steps=options.anneal_steps, factor=factor)
    audio, text = request.mels(stored), text_config(options.text, initial=request.initial and request.initial[1].text)
    optimization = Optimization(schedule, betas=(0.9, 0.999), eps=1e-8)
    return TrainingSetup(options, audio, text, optimization, adapt=adapt, set_up_networks=set_up_networks)


def annealing_schedule(learning_rate: float, *, steps: Sequence[int], factor: float) -> Schedule:
    """Return learning_rate x factor^n after n of ``steps`` (epochs); a factor of 0.3 gives 1, 0.3, 0.1, 0.03, ..."""

    def rate(iteration: int, epoch: int, steps_per_epoch: int = 1) -> float:
        n_passed = sum(epoch > step for step in steps)
        if factor == AMP_FACTOR:
            return learning_rate * 0.1 ** (n_passed // 2) * (AMP_FACTOR if n_passed % 2 else 1.0)
        return learning_rate * factor**n_passed

    return rate


def model_config(
    options: TrainingOptions, audio: AudioConfig, text: TextConfig, *, base: ModelConfig | None
) -> ModelConfig:
    """Return the options' architecture for these mels and symbols; ``base`` isn't needed: every option has a value."""
    return replace(options.architecture, n_symbols=TextFrontEnd(text).n_symbols, n_mel_channels=audio.n_mels)


def set_up_networks(networks: Mapping[str, nn.Module], options: TrainingOptions, *, new: bool, **_: Any) -> list[str]:
    """Initialize batch norm's weights of a ``new`` model uniformly between 0 and 1, as published."""
    if new and not options.disable_uniform_initialize_bn_weight:
        for module in networks["tacotron2"].modules():
            if isinstance(module, nn.BatchNorm1d):
                nn.init.uniform_(module.weight)
    return []


def adapt(checkpoint: Checkpoint, wanted: Checkpoint) -> tuple[Checkpoint, list[str]]:
    """Adapt a checkpoint to the symbols of ``wanted``; known symbols keep their vectors."""
    if checkpoint.text is None or wanted.text is None:
        return checkpoint, []
    before, after = TextFrontEnd(checkpoint.text), TextFrontEnd(wanted.text)
    weights = dict(checkpoint.networks["tacotron2"])
    weights[_SYMBOLS], lines = rows_by_name(
        weights[_SYMBOLS], after.symbols, known=before.symbols, what="symbols", leave_out=before.padding_id
    )
    config = replace(checkpoint.config, n_symbols=after.n_symbols)
    return replace(checkpoint, networks={"tacotron2": weights}, config=config, text=wanted.text), lines
