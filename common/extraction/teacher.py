"""A teacher's features of recordings: durations from its attention, the attention itself, and its mels."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from common.extraction.batches import mel_batches
from common.extraction.features import Extraction, ExtractionPlan, Teacher, with_durations, write_feature
from common.synthesis import MelOutput
from common.text import TextFrontEnd

BATCH = 16  # clips; attention's memory grows with frames x symbols

# A text-to-mel network under teacher forcing, on the device of its mels: tokens (L,) and mels (n_mels, F) of utterances
# -> mel, frames and alignments, each as if it were alone.
TeacherModel = Callable[[Sequence[Tensor], Sequence[Tensor]], MelOutput]


def run_teacher(
    items: Sequence[Extraction], plan: ExtractionPlan, *, model: TeacherModel, device: torch.device
) -> Iterator[Extraction]:
    """Write what is missing of each item; yields each with its durations and what was made, or with its refusal."""
    for good, mels, refused in mel_batches(items, plan, device=device, size=BATCH):
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
            yield _write(item, features, plan)


def _write(item: Extraction, features: dict[str, Tensor], plan: ExtractionPlan) -> Extraction:
    if not all(bool(torch.isfinite(tensor).all()) for tensor in features.values()):
        return replace(item, refusal=f"{item.utterance.wav}: the output of {teacher_of(plan).model} is not finite")
    missing = tuple(folder for folder in plan.taught if folder not in item.kept)
    for folder in missing:
        write_feature(plan.path(folder, item.utterance.name), features[folder])
    item = replace(item, made=missing)
    return with_durations(item, features["durations"].numpy()) if "durations" in missing else item


def teacher_of(plan: ExtractionPlan) -> Teacher:
    """The teacher of a plan that needs one."""
    assert plan.teacher is not None
    return plan.teacher


def warn_dropped(items: Sequence[Extraction], plan: ExtractionPlan) -> None:
    """One warning line that counts the symbols of all transcripts that the teacher's symbol set lacks."""
    front_end = TextFrontEnd(teacher_of(plan).text, unknown_symbols=teacher_of(plan).unknown_symbols)
    front_end.dropped = Counter(symbol for item in items for symbol in item.dropped)
    front_end.warn_dropped()
