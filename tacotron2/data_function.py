"""Tacotron 2's training data."""
from dataclasses import dataclass
from torch import Tensor
from common.data import Batch
@dataclass(frozen=True)
class Tacotron2Batch(Batch):
    tokens: Tensor
