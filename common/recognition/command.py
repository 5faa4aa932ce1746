"""The transcription command: transcripts, error rates if references are known, and speed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.checkpoints.loading import LoadedCheckpoint
from common.cli import MANY_BATCHES
from common.files import check_apart, check_output_file, write_atomically, write_json, write_text
from common.logger import Logger
from common.precision import Precision
from common.progress import print_line
from common.recognition.options import PERCENTILES, TranscribingOptions
from common.recognition.recognizer import Transcription, error_counts, load_recognizer


def transcribe(
    checkpoint: LoadedCheckpoint,
    options: TranscribingOptions,
    own: Any,
    *,
    precision: Precision,
    files: tuple[list[tuple[str, Path]], list[tuple[str, Path]]],
    parameters: Mapping[str, Any],
) -> int:
    """Transcribe recordings to stdout and to files, or only measure the speed; returns the exit status.

    ``own`` holds the model's options, and ``files`` those files named by options, to write and to read. ``parameters``
    are logged. Raises InputError if a recording can't be read, OptionError if a file is both read and written.
    """
    recognizer = replace(
        load_recognizer(checkpoint, options=own, precision=precision),
        batch_size=options.batch_size,
        padded_duration=(options.max_duration or 0.0) if options.pad_to_max_duration else 0.0,
    )
    items = recognizer.open(options.input, folder=options.dataset_path, max_duration=options.max_duration or math.inf)
    check_apart(files[0], [*files[1], *(("a recording of --input", Path(one.name)) for one in items)])
    output, save_logits = options.transcripts, options.save_logits
    for path in filter(None, (output, save_logits)):
        check_output_file(path)
    transcripts: list[Transcription] = []
    times: list[float] = []
    logger = Logger(options.log, stdout=False)
    try:
        logger.parameter(**parameters, precision=precision.name)
        if options.iterations:
            times, items = recognizer.measure(items, iterations=options.iterations, warmup_steps=options.warmup_steps)
        else:
            for one in recognizer.transcripts(items, times=times, with_log_probs=save_logits is not None):
                transcripts.append(one)
                if not options.quiet:
                    print_line(f"{one.wav}|{one.text}")
        rates = error_rates(transcripts)
        work, duration = sum(times), sum(item.duration for item in items)  # s
        figures = {"avg_latency": work / len(times)}
        figures |= {f"{one}%_latency": float(np.percentile(times, one)) for one in PERCENTILES}
        figures |= {"avg_sequences/s": len(items) / work, "avg_RTF": duration / work}
        logger.log((), rates | figures)
    finally:
        if output is not None and transcripts:
            save_transcripts(output, transcripts)
    if save_logits is not None and transcripts:
        write_atomically(save_logits, lambda file: torch.save([one.log_probs for one in transcripts], file))
    print_summary(rates, figures, with_latency=options.iterations > 0 or len(times) > MANY_BATCHES)
    return 0


def error_rates(transcripts: Sequence[Transcription]) -> dict[str, float]:
    """Return ``wer`` and ``cer`` of the transcripts with a reference, and counts; {} if there are none."""
    pairs = [(one.reference, one.text) for one in transcripts if one.reference is not None]
    if not pairs:
        return {}
    counts = error_counts([reference for reference, _ in pairs], [text for _, text in pairs])
    sizes = {"references": len(pairs), "words": counts.n_words, "characters": counts.n_chars}
    return {"wer": counts.wer, "cer": counts.cer, **sizes}


def print_summary(rates: dict[str, float], times: dict[str, float], *, with_latency: bool) -> None:
    """Print the run's figures; ``avg_RTF`` in the log is the inverse of the usual RTF."""
    if rates:
        sizes = f"{rates['references']} utterances, {rates['words']} words, {rates['characters']} characters"
        print_line(f"WER {100 * rates['wer']:.2f} %, CER {100 * rates['cer']:.2f} % ({sizes})")
    if with_latency:
        percentiles = ", ".join(f"{one} % {1000 * times[f'{one}%_latency']:.2f}" for one in PERCENTILES)
        print_line(f"latency per batch {1000 * times['avg_latency']:.2f} ms ({percentiles})")
    rtf = f"RTF {1 / times['avg_RTF']:.4f} (work / speech), {times['avg_RTF']:.2f} x real time"
    print_line(f"{times['avg_sequences/s']:.2f} sequences/s, {rtf}")


def save_transcripts(path: Path, transcripts: Sequence[Transcription]) -> None:
    """Write transcripts and error rates as JSON, or, to a .txt file, one text per line."""
    if path.suffix == ".txt":
        write_text(path, "".join(f"{one.text}\n" for one in transcripts))
        return
    names = ("wav", "text", "reference", "duration", "wer", "cer")
    rows = [{name: getattr(one, name, getattr(one.errors, name, None)) for name in names} for one in transcripts]
    write_json(path, {"figures": error_rates(transcripts), "utterances": rows})
