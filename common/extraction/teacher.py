"""What a text-to-mel model that follows recordings says of them: durations, its attention, and the mels it makes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from common.config import to_plain
from common.errors import InputError
from common.extraction.batches import mel_batches
from common.extraction.features import FROM_ATTENTION, ExtractionPlan, Follower, Prepared, with_durations
from common.files import read_json, save_tensor, write_json
from common.synthesis.controls import MelOutput
from common.text.front_end import TextFrontEnd

BATCH = 16  # clips; attention's memory grows with frames x symbols
MAKER = "follower.json"  # beside what it made: which model, with which weights and text front end


class Follow(Protocol):
    """A network that follows recordings."""

    def __call__(self, tokens: Sequence[Tensor], mels: Sequence[Tensor]) -> MelOutput:
        """tokens (L,) and mels (n_mels, F) of utterances -> mel, frames and alignments, each as if it were alone."""


def follow(
    items: Sequence[Prepared], plan: ExtractionPlan, *, network: Follow, device: torch.device
) -> Iterator[Prepared]:
    """Write what is missing of each item; yields each with its durations and what was made, or with its refusal."""
    for good, mels, refused in mel_batches(items, plan, device=device, size=BATCH):
        yield from (replace(item, refusal=why) for item, why in refused)
        if not good:
            continue
        output = network([torch.tensor(item.tokens) for item in good], mels)
        durations, attentions, made = (part.float().cpu() for part in (output.frames, output.alignments, output.mel))
        for row, (item, n_frames) in enumerate(zip(good, output.lengths.tolist())):
            n_tokens = len(item.tokens)
            features = {
                "durations": durations[row, :n_tokens].long(),
                "attentions": attentions[row, :n_frames, :n_tokens],
                "mels_teacher": made[row, :, :n_frames],
            }
            yield _write(item, features, plan)


def _write(item: Prepared, features: dict[str, Tensor], plan: ExtractionPlan) -> Prepared:
    if not all(bool(torch.isfinite(tensor).all()) for tensor in features.values()):
        return replace(item, refusal=f"{item.utterance.wav}: what {plan.follower.model} makes of it is not finite")
    missing = [folder for folder in plan.followed if folder not in item.follower_kept]
    for folder in missing:
        path = plan.path(folder, item.utterance.name)
        try:
            save_tensor(path, features[folder], durable=False)
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error
    item = replace(item, follower_made=tuple(missing))
    if plan.durations_from != FROM_ATTENTION or "durations" not in missing:
        return item
    return with_durations(item, features["durations"].numpy().astype(np.int64))


def is_missing(item: Prepared, plan: ExtractionPlan) -> bool:
    """Whether the follower still has to hear an item."""
    return any(folder not in item.follower_kept for folder in plan.followed)


def warn_dropped(items: Sequence[Prepared], plan: ExtractionPlan) -> None:
    """One warning line that counts the symbols of all transcripts that the follower does not know."""
    front_end = TextFrontEnd(plan.follower.text, unknown_symbols=plan.follower.unknown_symbols)
    front_end.dropped = Counter(symbol for item in items for symbol in item.dropped)
    front_end.warn_dropped()


def claim(folder: Path, plan: ExtractionPlan, *, is_followers: bool) -> None:
    """Say in ``folder`` that the plan's follower makes what is there, or that no model does.

    Raises:
        InputError: there are files of another maker.
    """
    path = folder / MAKER
    there = read_json(path) if path.is_file() else None
    wanted = describe(plan.follower) if is_followers else None
    if there == wanted:
        return
    if next(folder.glob("*.pt"), None) is not None:
        makers = [_name(there), _name(wanted)]
        other = " with other weights or another text front end" if makers[0] == makers[1] else ""
        raise InputError(
            f"{folder}: holds what {makers[0]}{other} made, and now {makers[1]} would; move the folder away"
        )
    if wanted is None:
        path.unlink()
    else:
        write_json(path, wanted)


def describe(follower: Follower) -> dict[str, object]:
    """What stands in the file ``MAKER``."""
    return {"model": follower.model, "sha256": follower.sha256, "text": to_plain(follower.text)}


def _name(maker: dict[str, object] | None) -> str:
    return "no model" if maker is None else str(maker["model"])
