"""Mel-spectrograms of a whole corpus on one GPU: threads read ahead, batches hold clips of like length."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.errors import InputError
from common.extraction import ExtractionPlan, Prepared, load_item, reason
from common.files import save_tensor
from common.mel import MelExtractor

BATCH = 32  # clips
READERS = 4  # threads


def mels_on_device(
    items: Sequence[Prepared], plan: ExtractionPlan, *, device: torch.device
) -> Iterator[tuple[Prepared, str | None]]:
    """Write the mel-spectrogram of every item; yields each one with None, or with the reason why it was refused."""
    extractor = MelExtractor(plan.audio).to(device)
    items = sorted(items, key=lambda item: item.n_samples)  # little padding
    batches = [items[start : start + BATCH] for start in range(0, len(items), BATCH)]
    with ThreadPoolExecutor(READERS) as readers, torch.inference_mode():
        ahead = [readers.submit(_load, batch, plan) for batch in batches[:READERS]]
        for index, batch in enumerate(batches):
            waves = ahead.pop(0).result()
            if index + READERS < len(batches):
                ahead.append(readers.submit(_load, batches[index + READERS], plan))
            good = [(item, wave) for item, wave in zip(batch, waves) if isinstance(wave, Tensor)]
            for item, wave in zip(batch, waves):
                if not isinstance(wave, Tensor):
                    yield item, wave
            if not good:
                continue
            lengths = torch.tensor([len(wave) for _, wave in good], device=device)
            padded = pad_sequence([wave for _, wave in good], batch_first=True).to(device)
            mels = extractor(padded, lengths).cpu()
            for (item, _), mel in zip(good, mels):
                first, last = item.kept_frames
                save_tensor(plan.path("mels", item.utterance.name), mel[:, first:last], durable=False)
                yield item, None


def _load(batch: Sequence[Prepared], plan: ExtractionPlan) -> list[Tensor | str]:
    """The samples of each item, or the reason why they cannot be used."""
    waves: list[Tensor | str] = []
    for item in batch:
        try:
            waves.append(load_item(item, plan))
        except InputError as error:
            waves.append(reason(error, plan))
    return waves
