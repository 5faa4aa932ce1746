"""Set up HiFi-GAN training: mels, segments, architecture and schedule."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations_with_replacement
from math import prod
from pathlib import Path
from typing import Any

from common.audio.options import AudioOptions
from common.config import AudioConfig
from common.errors import InputError, OptionError, shown
from common.files import read_json
from common.options import options_of, read_value
from common.training.optim import Optimization, exponential_schedule
from common.training.options import RunOptions
from common.training.settings import TrainingRequest, TrainingSetup, stored_mels
from hifigan.arg_parser import ADAM_BETAS, SEGMENT_SIZE, TrainingOptions
from hifigan.config import AUDIO_KEYS, PRESETS, ModelConfig
from hifigan.model import set_up_networks

_LARGEST_RATE = 8  # of one upsampling, if the rates are chosen to fit a hop length
# Keys of config.json that differ from the options' names, and those without an option.
_OPTIONS = {key: field for field, key in AUDIO_KEYS.items()}
_OPTIONS |= {"fmax_for_loss": "mel_fmax_loss", "fmax_loss": "mel_fmax_loss"}
_IGNORED = ("num_gpus", "num_workers", "num_freq", "dist_config")


def find_defaults(given: Mapping[str, Any], initial: Any) -> dict[str, Any]:
    """Read default options from --hifigan-config, by name; raises InputError."""
    path: Path | None = given["hifigan_config"]
    if path is None:
        return {}
    values = read_json(path)
    betas = [values.pop(key, beta) for key, beta in zip(("adam_b1", "adam_b2"), ADAM_BETAS)]
    kinds = (ModelConfig, TrainingOptions, AudioOptions, RunOptions)
    declared = {name: (hint, known) for kind in kinds for name, hint, known in options_of(kind)}
    defaults = {}
    for key, value in (values | {"adam_betas": betas}).items():
        name = _OPTIONS.get(key, key)
        if key in _IGNORED:
            continue
        if name not in declared:
            raise InputError(f"{path}: unknown key {shown(key)}; expected those of HiFi-GAN's config.json")
        try:
            defaults[name] = read_value(value, *declared[name])
        except OptionError as error:
            raise InputError(f"{path}: {key} {error}") from error
    return defaults


def set_up(options: TrainingOptions, request: TrainingRequest) -> TrainingSetup:
    """Set up the training run that the options describe."""
    run = request.run
    options.check_fine_tuning()
    if len(options.adam_betas) != 2:
        raise OptionError(f"--adam-betas {options.adam_betas}: expected two numbers")
    source = stored_mels(options.input_mels_dir, option="--input-mels-dir")
    # Mels without a description, as published tools write them, may differ from the previous training run's.
    audio = request.mels(source, for_voice=options.for_voice, may_resume=options.input_mels_dir is None)
    hop = audio.hop_length
    segment_size = options.segment_size or SEGMENT_SIZE // hop * hop
    if segment_size % hop:
        raise OptionError(f"--segment-size {segment_size}: expected a multiple of the hop length, {hop} samples")
    rate = run.learning_rate * (options.fine_tune_lr_factor if options.fine_tuning else 1)
    schedule = exponential_schedule(rate, decay=options.lr_decay)
    # One large pass is faster than two small ones on a GPU, and slower on a CPU.
    concat_fwd = request.computing.cuda if options.concat_fwd is None else options.concat_fwd
    optimization = Optimization(schedule, betas=options.adam_betas, eps=1e-8)
    options = replace(options, segment_size=segment_size, concat_fwd=concat_fwd)
    setup = TrainingSetup(options, audio, None, optimization, same_shapes=True, set_up_networks=set_up_networks)
    return replace(setup, adaptable=("framing", "peak")) if options.fine_tuning else setup


def model_config(options: TrainingOptions, audio: AudioConfig, text: None, *, base: ModelConfig | None) -> ModelConfig:
    """Return the architecture for ``audio``: the options, with defaults from a checkpoint's ``base`` or the preset."""
    given = {**options.architecture, "n_mel_channels": audio.n_mels}
    if base is not None:
        return replace(base, **given)
    preset = PRESETS[options.preset]
    if "upsample_rates" not in given and "upsample_kernel_sizes" not in given:
        given["upsample_rates"] = fitting_rates(audio.hop_length, preset.upsample_rates)
    if "upsample_rates" in given and "upsample_kernel_sizes" not in given:
        given["upsample_kernel_sizes"] = tuple(2 * rate + rate % 2 for rate in given["upsample_rates"])
    return replace(preset, **given)


def fitting_rates(hop_length: int, preset: tuple[int, ...]) -> tuple[int, ...]:
    """Return the preset's rates if they multiply to the hop length, else equally many descending rates that do."""
    if prod(preset) == hop_length:
        return preset
    for rates in combinations_with_replacement(range(_LARGEST_RATE, 1, -1), len(preset)):  # the largest come first
        if prod(rates) == hop_length:
            return rates
    problem = f"not a product of {len(preset)} rates from 2 to {_LARGEST_RATE}; give --upsample-rates"
    raise OptionError(f"--hop-length {hop_length}: {problem}")
