"""Mel-spectrograms of a corpus in length-bucketed batches of one process; threads read ahead."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.audio.mel import MelExtractor
from common.errors import InputError
from common.extraction.features import ExtractionPlan, Prepared, load_item, reason
from common.files import save_tensor

BATCH = 32  # clips
READERS = 4  # threads

Refused = tuple[Prepared, str]  # with the reason


def mels_on_device(
    items: Sequence[Prepared], plan: ExtractionPlan, *, device: torch.device
) -> Iterator[tuple[Prepared, str | None]]:
    """Write the mel-spectrogram of every item; yields each one with None, or with the reason why it was refused."""
    for good, mels, refused in mel_batches(items, plan, device=device, size=BATCH):
        yield from refused
        for item, mel in zip(good, [mel.cpu() for mel in mels]):
            first, last = item.kept_frames
            save_tensor(plan.path("mels", item.utterance.name), mel[:, first:last], durable=False)
            yield item, None


def mel_batches(
    items: Sequence[Prepared], plan: ExtractionPlan, *, device: torch.device, size: int
) -> Iterator[tuple[list[Prepared], list[Tensor], list[Refused]]]:
    """Batches of at most ``size`` items, the shortest first, with their mels (n_mels, F) on ``device``.

    Items whose recording cannot be used are returned separately, each with the reason.
    """
    extractor = MelExtractor(plan.audio).to(device)
    items = sorted(items, key=lambda item: item.n_samples)  # little padding
    batches = [items[start : start + size] for start in range(0, len(items), size)]
    with ThreadPoolExecutor(READERS) as readers:
        ahead = [readers.submit(_load, batch, plan) for batch in batches[:READERS]]
        for index, batch in enumerate(batches):
            waves = ahead.pop(0).result()
            if index + READERS < len(batches):
                ahead.append(readers.submit(_load, batches[index + READERS], plan))
            good = [(item, wave) for item, wave in zip(batch, waves) if isinstance(wave, Tensor)]
            refused = [(item, wave) for item, wave in zip(batch, waves) if not isinstance(wave, Tensor)]
            mels = _mels([wave for _, wave in good], extractor, device) if good else []
            yield [item for item, _ in good], mels, refused


@torch.inference_mode()
def _mels(waves: list[Tensor], extractor: MelExtractor, device: torch.device) -> list[Tensor]:
    """Each wave's mel, without padding."""
    lengths = torch.tensor([len(wave) for wave in waves], device=device)
    padded = extractor(pad_sequence(waves, batch_first=True).to(device), lengths)
    return [mel[:, : extractor.n_frames(len(wave))] for mel, wave in zip(padded, waves)]


def _load(batch: Sequence[Prepared], plan: ExtractionPlan) -> list[Tensor | str]:
    """The samples of each item, or the reason why they cannot be used."""
    waves: list[Tensor | str] = []
    for item in batch:
        try:
            waves.append(load_item(item, plan))
        except InputError as error:
            waves.append(reason(error, plan))
    return waves
