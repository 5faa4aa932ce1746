"""Mel-spectrograms of a corpus in length-bucketed batches of one process; threads read ahead."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.audio import MelExtractor
from common.errors import InputError
from common.extraction.features import Extraction, ExtractionPlan, load_item, reason, write_feature

BATCH = 32  # clips
READERS = 4  # threads


def mels_on_device(items: Sequence[Extraction], plan: ExtractionPlan, *, device: torch.device) -> Iterator[Extraction]:
    """Write the mel-spectrogram of every item; yields each one with ``mels`` made, or refused."""
    for good, mels, refused in mel_batches(items, plan, device=device, size=BATCH):
        yield from refused
        for item, mel in zip(good, [mel.cpu() for mel in mels]):
            write_feature(plan.path("mels", item.utterance.name), mel[:, slice(*item.kept_frames)])
            yield replace(item, made=(*item.made, "mels"))


def mel_batches(
    items: Sequence[Extraction], plan: ExtractionPlan, *, device: torch.device, size: int
) -> Iterator[tuple[list[Extraction], list[Tensor], list[Extraction]]]:
    """Batches of at most ``size`` items, the shortest first, with their mels (n_mels, F) on ``device``.

    Items whose recording cannot be used are returned separately, refused.
    """
    extractor = MelExtractor(plan.audio).to(device)
    items = sorted(items, key=lambda item: item.n_samples)  # little padding
    batches = [items[start : start + size] for start in range(0, len(items), size)]
    with ThreadPoolExecutor(READERS) as readers:
        ahead = [readers.submit(_load, batch, plan) for batch in batches[:READERS]]
        for index in range(len(batches)):
            loaded = ahead.pop(0).result()
            if index + READERS < len(batches):
                ahead.append(readers.submit(_load, batches[index + READERS], plan))
            good = [(item, wave) for item, wave in loaded if wave is not None]
            mels = _mels([wave for _, wave in good], extractor, device) if good else []
            yield [item for item, _ in good], mels, [item for item, wave in loaded if wave is None]


@torch.inference_mode()
def _mels(waves: list[Tensor], extractor: MelExtractor, device: torch.device) -> list[Tensor]:
    """Each wave's mel, without padding."""
    lengths = torch.tensor([len(wave) for wave in waves], device=device)
    padded = extractor(pad_sequence(waves, batch_first=True).to(device), lengths)
    return [mel[:, : extractor.n_frames(len(wave))] for mel, wave in zip(padded, waves)]


def _load(batch: Sequence[Extraction], plan: ExtractionPlan) -> list[tuple[Extraction, Tensor | None]]:
    """Each item with its samples, or refused and without."""
    loaded: list[tuple[Extraction, Tensor | None]] = []
    for item in batch:
        try:
            loaded.append((item, load_item(item, plan)))
        except InputError as error:
            loaded.append((replace(item, refusal=reason(error, plan)), None))
    return loaded
