"""Evaluates opened checkpoints on a list, as options say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from common.audio import MelExtractor
from common.checkpoints import LoadedCheckpoint
from common.evaluation.evaluator import Evaluator, Synthesize, copy, speak
from common.evaluation.items import EvaluationItem, read_copies, read_items
from common.evaluation.options import EvaluationOptions
from common.evaluation.packages import Pocketsphinx, installed, note_missing
from common.evaluation.run import check_files, run_evaluation
from common.files import sha256
from common.precision import Precision
from common.recognition import Recognizer, load_recognizer
from common.registry import VocoderSpec
from common.synthesis import GriffinLimVocoder, contract_of, make_vocoder, make_voice
from common.synthesis.options import VoiceOptions

# Options that the results do not depend on, or whose files they depend on.
_NOT_SETTINGS = set("generator vocoder list output fresh recordings transcripts dataset_path".split())


@dataclass(frozen=True)
class _Work:
    """What is to be synthesized, and how."""

    items: Sequence[EvaluationItem]
    synthesize: Synthesize
    griffin_lim: Synthesize | None  # beside a vocoder
    sampling_rate: int  # Hz
    extractor: MelExtractor | None = None  # of the mels of copies


def evaluate(
    path: Path,
    options: EvaluationOptions,
    voice: VoiceOptions,
    models: Mapping[str, LoadedCheckpoint],
    *,
    precision: Precision,
    read: Sequence[tuple[str, Path]],
    parameters: Mapping[str, Any],
) -> int:
    """Evaluate the ``models``, by role, on the list at ``path``; the exit status.

    ``read`` are the files that options name; ``parameters`` are all options, for the page and for resuming. Mistakes
    in the list and the checkpoints show before the first phrase is spoken.

    Raises:
        InputError: the list, or what belongs to one of its lines, cannot be used; names the line.
    """
    can_recognize = "recognizer" in models or "pocketsphinx" in installed()
    if "generator" in models:
        work = _speaking(path, options, voice, models, precision, needs_words=can_recognize)
    else:
        work = _copying(path, options, voice, models.get("vocoder"), precision)
    vocoder = [("VOCODER", models["vocoder"].path)] if "vocoder" in models else []
    check_files(options.output, work.items, dataset_path=options.dataset_path, read=[*read, *vocoder])
    recognizer: Recognizer | Pocketsphinx | None = None
    has_words = any(item.words is not None for item in work.items)
    if "recognizer" in models:
        recognizer = load_recognizer(models["recognizer"], precision=precision)
    elif can_recognize and has_words:
        recognizer = Pocketsphinx.load()
    evaluator = Evaluator(
        folder=options.output,
        synthesize=work.synthesize,
        griffin_lim=work.griffin_lim,
        sampling_rate=work.sampling_rate,
        recognizer=recognizer,
        extractor=work.extractor,
    )
    note_missing([*evaluator.measures, *["pocketsphinx"] * (recognizer is None and has_words)])
    named = {one.spec.option if role == "recognizer" else role: one for role, one in models.items()}
    facts = {role: str(parameters[role]) for role in ("generator", "vocoder", "list") if parameters[role]}
    facts |= {name: str(one.path) for name, one in named.items() if name not in facts}
    facts |= {"precision": precision.name, "threads": str(torch.get_num_threads())}
    values = {name: str(value) if isinstance(value, Path) else value for name, value in parameters.items()}
    settings = {
        "sha256": {name: sha256(one.path) for name, one in named.items()},
        "packages": sorted(installed()),
        "options": {name: value for name, value in values.items() if name not in _NOT_SETTINGS | named.keys()},
    }
    return run_evaluation(work.items, evaluator, settings=settings, facts=facts, fresh=options.fresh)


def _speaking(
    path: Path,
    options: EvaluationOptions,
    voice_options: VoiceOptions,
    models: Mapping[str, LoadedCheckpoint],
    precision: Precision,
    *,
    needs_words: bool,
) -> _Work:
    """What a voice is to speak; ``needs_words`` as `read_items` has it."""
    vocoder, speaking = models.get("vocoder"), voice_options.speaking
    voice = make_voice(models["generator"], vocoder, voice_options, precision=precision)
    seed = None if voice_options.front_end.p_arpabet is None else speaking.seed
    items = read_items(path, voice, options, speaker=speaking.speaker, seed=seed, needs_words=needs_words)
    griffin_lim = replace(voice, vocoder=GriffinLimVocoder(voice.audio, seed=speaking.seed), vocoder_pitch="mel")
    beside = None if vocoder is None else partial(speak, griffin_lim)
    return _Work(items, partial(speak, voice), beside, voice.sampling_rate)


def _copying(
    path: Path, options: EvaluationOptions, voice: VoiceOptions, opened: LoadedCheckpoint | None, precision: Precision
) -> _Work:
    """The recordings whose mels a vocoder's checkpoint, or without one Griffin-Lim, makes sound of."""
    contract = None
    if opened is not None:
        contract = contract_of(opened, accepted=voice.speaking.accept_audio_differences)
    inference = None if opened is None or opened.exported is not None else opened.spec.inference
    takes_pitch = isinstance(inference, VocoderSpec) and inference.takes_pitch
    items, audio = read_copies(path, options, contract=contract, takes_pitch=takes_pitch)
    vocoder = make_vocoder(opened, voice, audio=audio, precision=precision)
    griffin_lim = GriffinLimVocoder(audio, seed=voice.speaking.seed)
    beside = None if opened is None else partial(copy, griffin_lim, precision.device)
    synthesize = partial(copy, vocoder, precision.device)
    return _Work(items, synthesize, beside, audio.sampling_rate, MelExtractor(audio))
