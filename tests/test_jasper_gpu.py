"""What only shows on a GPU of Jasper: run with `bash scripts/test.sh -m gpu`."""

import pytest
import torch
from tiny_jasper import small_network, tiny_engine, utterances

from common.distributed import Ranks
from jasper.augmentation import Augmentation, SpecAugment
from jasper.loss_function import JasperObjective

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device")]
VARIED = Augmentation(spec_augment=SpecAugment(freq_masks=2, max_freq=4, time_masks=2, max_time=6))
LENGTHS = [4000, 3200, 2411, 1701]


def test_features_with_masks_are_the_cpus_numbers():
    objective, network = JasperObjective(VARIED), small_network()
    batch = utterances(LENGTHS, augmentation=VARIED)
    expected = objective.features(network, batch)
    found = objective.features(network.to("cuda"), batch.to(torch.device("cuda")))
    assert found.features.is_cuda and torch.equal(found.lengths.cpu(), expected.lengths)
    difference = (found.features.cpu() - expected.features).abs()
    assert difference.max().item() < 1e-2 and difference.mean().item() < 2e-5


def test_updates_on_a_gpu_learn_what_those_on_a_cpu_learn():
    found = {}
    for device in (torch.device("cpu"), torch.device("cuda")):
        networks = {"jasper": small_network().to(device)}
        engine = tiny_engine(networks, augmentation=VARIED, ranks=Ranks(device=device))
        batch = utterances(LENGTHS, augmentation=VARIED).to(device)
        found[device.type] = [engine.step([batch], epoch=1).terms["ctc_loss"] for _ in range(4)]
    assert found["cuda"] == pytest.approx(found["cpu"], rel=2e-3)
