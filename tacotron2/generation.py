"""The decoder's loop at inference: each step reads its previous frame, until the gate of all utterances has fired."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from common.synthesis import WarmGraphRecorder
from tacotron2.config import ModelConfig
from tacotron2.decoder import MASK_CHUNK, PRENET_LAYERS, Decoder
from tacotron2.step import DecoderStep

# () -> the prenet's dropout factors (MASK_CHUNK, layers, B or 1, prenet_dim) of the next steps
DrawMasks = Callable[[], Tensor]


@dataclass(frozen=True)
class Generated:
    """The decoder's output for a batch of texts, as long as the longest."""

    mel: Tensor  # (B, n_mels, F) before the postnet
    alignments: Tensor  # (B, F, L) float32
    n_steps: Tensor  # (B,) frames up to and including the one at which the gate fired, or all
    lengths: Tensor  # (B,) frames before that one, or all; at least 1
    finished: Tensor  # (B,) bool: whether the gate fired


class Steps(ABC):
    """What a batch that is being decoded has so far, in buffers that each step changes in place.

    Steps come in chunks, for each of which the prenet's dropout factors are set at once.
    """

    def __init__(self, memory: Tensor, *, config: ModelConfig, gate_threshold: float) -> None:
        """memory (B, L, memory_dim), of the dtype that steps compute in."""
        n_batch, n_tokens = memory.shape[:2]
        self._threshold = gate_threshold
        self._frame = memory.new_zeros(n_batch, config.n_mel_channels)  # the previous one
        self._position = torch.zeros(1, dtype=torch.int64, device=memory.device)  # of the step within the chunk
        self._masks = memory.new_zeros(MASK_CHUNK, PRENET_LAYERS, n_batch, config.prenet_dim)
        self._outputs = memory.new_zeros(MASK_CHUNK, n_batch, config.n_mel_channels + 1)  # frame and gate's logit
        self._alignments = memory.new_zeros(MASK_CHUNK, n_batch, n_tokens, dtype=torch.float32)
        self.fired = torch.zeros(n_batch, dtype=torch.bool, device=memory.device)
        self.lengths = torch.zeros(n_batch, dtype=torch.int64, device=memory.device)

    def begin_chunk(self, masks: Tensor) -> None:
        """Set the prenet's factors (MASK_CHUNK, layers, B or 1, prenet_dim) of the next `MASK_CHUNK` steps."""
        self._masks.copy_(masks)
        self._position.zero_()

    @abstractmethod
    def compute(self, masks: Tensor) -> tuple[Tensor, Tensor]:
        """Frame and gate's logit (B, n_mels + 1) of the step after `_frame`, and its attention weights (B, L).

        masks (layers, B, prenet_dim)
        """

    def advance(self) -> Tensor:
        """Compute the next frame (B, n_mels)."""
        output, alignment = self.compute(self._masks.index_select(0, self._position)[0])
        self._frame.copy_(output[:, :-1])
        self._outputs.index_copy_(0, self._position, output.unsqueeze(0))
        self._alignments.index_copy_(0, self._position, alignment.unsqueeze(0))
        self.fired.logical_or_(output[:, -1].float().sigmoid() > self._threshold)
        self.lengths.add_(~self.fired)
        self._position.add_(1)
        return self._frame

    def taken(self, n_steps: int) -> tuple[Tensor, Tensor]:
        """Copies of the chunk's first outputs (n_steps, B, n_mels + 1) and alignments (n_steps, B, L)."""
        return self._outputs[:n_steps].to(torch.float32, copy=True), self._alignments[:n_steps].clone()

    def recorded(self) -> Callable[[], object]:
        """`advance` as fast as a GPU can run it."""
        return self.advance


class DecoderSteps(Steps):
    """Steps of a decoder's network, which depend on buffers alone, so that one can be recorded as a CUDA graph."""

    def __init__(
        self, decoder: Decoder, memory: Tensor, padding: Tensor, *, config: ModelConfig, gate_threshold: float
    ) -> None:
        """memory (B, L, memory_dim), padding (B, L) bool."""
        parts = decoder.prepare(memory)
        super().__init__(parts.memory, config=config, gate_threshold=gate_threshold)
        self._prenet_weights = [
            layer.get_parameter("linear_layer.weight").to(parts.dtype) for layer in decoder.prenet.layers
        ]
        self._prenet_weight, self._bias = parts.prenet_weight, parts.bias
        self._projection, self._projection_bias = (one.to(parts.dtype) for one in decoder.projection())
        self._step = DecoderStep(parts.step, parts.memory, parts.processed, padding, n_slots=1)
        self._state = parts.memory.new_zeros(len(memory), self._projection.size(1))
        self._alignment = memory.new_zeros(padding.shape, dtype=torch.float32)

    def compute(self, masks: Tensor) -> tuple[Tensor, Tensor]:
        """masks (layers, B, prenet_dim) -> frame and gate's logit (B, n_mels + 1), attention weights (B, L)."""
        hidden = self._frame
        for weight, mask in zip(self._prenet_weights, masks):
            hidden = F.linear(hidden, weight).relu_().mul_(mask)
        gates = F.linear(hidden, self._prenet_weight, self._bias)
        self._step.advance(0, 0, gates, state=self._state, alignment=self._alignment)
        return F.linear(self._state, self._projection, self._projection_bias), self._alignment

    def recorded(self) -> Callable[[], object]:
        """Record `advance` as a CUDA graph and return its replay."""
        replay = WarmGraphRecorder()(self.advance)[0]
        self._step.reset()  # as before the steps that recording takes
        for buffer in (self._frame, self._position, self.fired, self.lengths):
            buffer.zero_()
        return replay


@torch.no_grad()
def generate(
    steps: Steps, *, draw_masks: DrawMasks, max_steps: int, stop_early: bool = True, use_graph: bool = True
) -> Generated:
    """Decode a batch, at most ``max_steps`` frames.

    ``stop_early`` stops at the step at which the last utterance's gate fires; the caller cuts off frames after an
    utterance's own end. On a GPU a network's step is replayed as a CUDA graph, unless ``use_graph`` is False.
    """
    device = steps.fired.device
    on_gpu = device.type == "cuda"
    outputs: list[Tensor] = []
    alignments: list[Tensor] = []
    with torch.autocast(device.type, enabled=False):
        advance = steps.recorded() if on_gpu and use_graph else steps.advance
        for start in range(0, max_steps, MASK_CHUNK):
            steps.begin_chunk(draw_masks())
            taken = 0
            for _ in range(min(MASK_CHUNK, max_steps - start)):
                advance()
                taken += 1
                # On a GPU this would wait for every step; finishing the chunk costs less, and is cut off below.
                if stop_early and not on_gpu and bool(steps.fired.all()):
                    break
            frames, weights = steps.taken(taken)
            outputs.append(frames)
            alignments.append(weights)
            if stop_early and bool(steps.fired.all()):
                break
    n_steps = sum(len(part) for part in outputs)
    if stop_early:
        n_steps = min(n_steps, int(steps.lengths.max()) + 1)
    output = torch.cat(outputs)[:n_steps].transpose(0, 1)
    return Generated(
        mel=output[:, :, :-1].transpose(1, 2),
        alignments=torch.cat(alignments)[:n_steps].transpose(0, 1),
        n_steps=steps.lengths + steps.fired,
        lengths=steps.lengths.clamp(min=1),
        finished=steps.fired,
    )
