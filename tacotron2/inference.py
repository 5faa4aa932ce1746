"""How Tacotron 2 speaks, from a network or its exported files: a loop in which each step reads its previous frame."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from common.nn.layers import mask_from_lengths
from common.synthesis.cuda_graphs import GraphRecorder
from common.synthesis.networks import TextToMel
from common.synthesis.utterances import Controls, MelOutput
from tacotron2.arg_parser import InferenceOptions
from tacotron2.config import ModelConfig
from tacotron2.decoder import MASK_CHUNK, PRENET_LAYERS, Decoder, PrenetMasks
from tacotron2.step import DecoderStep

SYMBOL_STEP = 32  # numbers of symbols that are recorded are multiples of it
# () -> the prenet's dropout factors (MASK_CHUNK, layers, B or 1, prenet_dim) of the next steps
DrawMasks = Callable[[], Tensor]


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
    def compute(self, masks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Frame (B, n_mels) and gate's logit (B,) of the step after `_frame`, and its attention weights (B, L).

        masks (layers, B, prenet_dim)
        """

    def advance(self) -> Tensor:
        """Compute the next frame (B, n_mels)."""
        frame, gate, alignment = self.compute(self._masks.index_select(0, self._position)[0])
        self._frame.copy_(frame)
        self._outputs.index_copy_(0, self._position, torch.cat([frame, gate.unsqueeze(1)], 1).unsqueeze(0))
        self._alignments.index_copy_(0, self._position, alignment.unsqueeze(0))
        self.fired.logical_or_(gate.float().sigmoid() > self._threshold)
        self.lengths.add_(~self.fired)
        self._position.add_(1)
        return self._frame

    def run(self) -> None:
        """Run `advance` as fast as the device can."""
        self.advance()

    def taken(self, n_steps: int) -> tuple[Tensor, Tensor]:
        """Copies of the chunk's first outputs (n_steps, B, n_mels + 1) and alignments (n_steps, B, L)."""
        return self._outputs[:n_steps].to(torch.float32, copy=True), self._alignments[:n_steps].clone()


class DecoderSteps(Steps):
    """Steps of a decoder's network, which depend on buffers alone, so that one can be recorded as a CUDA graph."""

    def __init__(
        self, decoder: Decoder, memory: Tensor, lengths: Tensor, *, config: ModelConfig, gate_threshold: float
    ) -> None:
        """memory (B, L, memory_dim), lengths (B,) symbols."""
        processed = decoder.attention_layer.memory_layer(memory)  # of autocast's dtype, if that is enabled
        memory = memory.to(processed.dtype)
        super().__init__(memory, config=config, gate_threshold=gate_threshold)
        with torch.autocast(memory.device.type, enabled=False):
            self._step = DecoderStep(decoder, memory.dtype)
        self._encoded = [memory, processed.transpose(1, 2).contiguous(), lengths.clone()]
        n_batch, n_tokens, n_context = memory.shape
        n_attention, n_decoder = config.attention_rnn_dim, config.decoder_rnn_dim
        widths = (n_attention, n_attention, n_decoder, n_decoder, n_context, n_tokens, n_tokens)
        in_float32 = (False, True, False, True, False, True, True)  # cells and attention weights
        dtypes = [torch.float32 if one else memory.dtype for one in in_float32]
        self._states = [memory.new_zeros(n_batch, width, dtype=dtype) for width, dtype in zip(widths, dtypes)]
        self._replay: Callable[[], object] | None = None

    @property
    def dtype(self) -> torch.dtype:
        """The dtype that steps compute in."""
        return self._frame.dtype

    def compute(self, masks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """masks (layers, B, prenet_dim) -> frame (B, n_mels), gate's logit (B,), attention weights (B, L)."""
        gate, frame, *states = self._step(masks, self._frame, *self._states, *self._encoded)
        torch._foreach_copy_(self._states, states)
        return frame, gate, self._states[-2]

    def record(self, recorder: GraphRecorder) -> bool:
        """Record `advance` as a CUDA graph, which `run` launches then; returns whether it is recorded."""
        recording = recorder.record(self.advance)
        self._reset()  # as before the steps that recording takes
        self._replay = None if recording is None else recording[0]
        return recording is not None

    def run(self) -> None:
        """Launch the recorded step, or without one run `advance`."""
        (self._replay or self.advance)()

    def load(self, other: "DecoderSteps") -> None:
        """Begin anew with what ``other``, of the same shapes, decodes by its weights."""
        pairs = zip([*self._encoded, *self._step.buffers()], [*other._encoded, *other._step.buffers()])
        for mine, theirs in pairs:
            mine.copy_(theirs)
        self._reset()

    def _reset(self) -> None:
        for buffer in (*self._states, self._frame, self._position, self.fired, self.lengths):
            buffer.zero_()


class StepGraphs:
    """Steps of a decoder, recorded once for each shape of a batch, whose symbols are padded to few lengths."""

    def __init__(self) -> None:
        self._recorder = GraphRecorder("Tacotron 2's decoder")
        self._kept: dict[tuple, DecoderSteps] = {}

    def __deepcopy__(self, memo: dict) -> "StepGraphs":
        return StepGraphs()

    def begin(
        self, decoder: Decoder, memory: Tensor, lengths: Tensor, *, config: ModelConfig, gate_threshold: float
    ) -> DecoderSteps:
        """The steps of memory (B, L, memory_dim), lengths (B,), until the next call."""
        memory = F.pad(memory, (0, 0, 0, -memory.size(1) % SYMBOL_STEP))
        steps = DecoderSteps(decoder, memory, lengths, config=config, gate_threshold=gate_threshold)
        # Tensors of inference mode cannot be written outside it.
        key = (memory.shape, steps.dtype, gate_threshold, torch.is_inference_mode_enabled())
        if key in self._kept:
            self._kept[key].load(steps)
            return self._kept[key]
        with torch.autocast(memory.device.type, enabled=False):
            if steps.record(self._recorder):
                self._kept[key] = steps
        return steps


def decode(steps: Steps, draw_masks: DrawMasks, *, max_steps: int, stop_early: bool) -> tuple[Tensor, Tensor]:
    """All frames with the gate's logits (B, F, n_mels + 1), at most ``max_steps``, and attention weights (B, F, L).

    ``stop_early`` stops at the step at which the last utterance's gate fires; the caller cuts off frames after an
    utterance's own end.
    """
    device = steps.fired.device
    on_gpu = device.type == "cuda"
    chunks: list[tuple[Tensor, Tensor]] = []
    with torch.autocast(device.type, enabled=False):
        for start in range(0, max_steps, MASK_CHUNK):
            steps.begin_chunk(draw_masks())
            taken = 0
            for _ in range(min(MASK_CHUNK, max_steps - start)):
                steps.run()
                taken += 1
                # On a GPU this would wait for every step; finishing the chunk costs less, and is cut off below.
                if stop_early and not on_gpu and bool(steps.fired.all()):
                    break
            chunks.append(steps.taken(taken))
            if stop_early and bool(steps.fired.all()):
                break
    outputs, alignments = (torch.cat(parts) for parts in zip(*chunks))
    n_steps = len(outputs)
    if stop_early:
        n_steps = min(n_steps, int(steps.lengths.max()) + 1)
    return outputs[:n_steps].transpose(0, 1), alignments[:n_steps].transpose(0, 1)


class Inference(TextToMel):
    """What infers, given an encoder with a decoder, and a postnet."""

    config: ModelConfig
    postnet: Callable[[Tensor, Tensor], Tensor]  # decoded mels (B, n_mels, F), lengths (B,) -> (B, n_mels, F)

    @abstractmethod
    def begin(self, tokens: Tensor, lengths: Tensor, *, gate_threshold: float) -> Steps:
        """Encode tokens (B, L) with ``lengths`` (B,); the steps that decode them."""

    @torch.no_grad()
    def infer(
        self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None, *, draw_masks: DrawMasks | None = None
    ) -> MelOutput:
        """Mels of tokens (B, L) with ``lengths`` (B,), independent of what else is in the batch.

        ``MelOutput.finished`` is False for an utterance that was cut at ``max_decoder_steps``. ``draw_masks`` replaces
        the dropout factors of the prenet, which come from the seed of ``controls``.
        """
        config, controls = self.config, controls or Controls()
        if draw_masks is None:
            draw_masks = functools.partial(PrenetMasks(config.prenet_dim, seed=controls.seed).draw, tokens.device)
        options = controls.options or InferenceOptions()
        max_steps = config.max_decoder_steps if options.max_decoder_steps is None else options.max_decoder_steps
        threshold = config.gate_threshold if options.gate_threshold is None else options.gate_threshold
        steps = self.begin(tokens, lengths, gate_threshold=threshold)
        stop_early = not config.decoder_no_early_stopping
        outputs, alignments = decode(steps, draw_masks, max_steps=max_steps, stop_early=stop_early)
        # The frame at which the gate fires is cut off, but was a true one in training: the postnet reads it.
        mel = self.postnet(outputs[:, :, :-1].transpose(1, 2), steps.lengths + steps.fired)
        mel_lengths = steps.lengths.clamp(min=1)
        n_frames = int(mel_lengths.max())
        mask = mask_from_lengths(mel_lengths, n_frames)
        alignments = alignments[:, :n_frames, : tokens.size(1)] * mask.unsqueeze(2)
        return MelOutput(
            mel=mel[:, :, :n_frames] * mask.unsqueeze(1),
            lengths=mel_lengths,
            frames=durations_from_alignments(alignments, lengths, mel_lengths),
            alignments=alignments,
            finished=steps.fired.clone(),
        )


def durations_from_alignments(alignments: Tensor, token_lengths: Tensor, mel_lengths: Tensor) -> Tensor:
    """Durations (B, L) int64: the frames whose largest attention weight is that of the token.

    alignments (B, F, L), token_lengths (B,); a row sums to its mel length (B,).
    """
    tokens = mask_from_lengths(token_lengths, alignments.size(2)).unsqueeze(1)
    frames = mask_from_lengths(mel_lengths, alignments.size(1))
    chosen = alignments.masked_fill(~tokens, -1.0).argmax(2)  # (B, F)
    durations = torch.zeros(len(alignments), alignments.size(2), dtype=torch.int64, device=alignments.device)
    return durations.scatter_add_(1, chosen, frames.long())
