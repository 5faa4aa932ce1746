"""HiFi-GAN's generator for exported files, and such a file in place of the network."""

from functools import partial
from typing import Any

import torch

from common.checkpoints.exported import WAVE, Exports, OnnxForm, Part, Quantization, Shapes, random_examples
from common.config import AudioConfig
from common.synthesis.networks import ExportedVocoder
from hifigan.config import ModelConfig
from hifigan.model import Generator, context_frames

# Masks before every convolution, as PyTorch's network has them, cost a narrow generator a quarter of its time here. So
# each utterance of a padded batch is cut out and spoken alone; utterances of one length are spoken in one turn.
_BATCHES = """
<ir_version: 8, opset_import: ["": 17]>
speak (float[batch, {n_mels}, frames] mel, int64[batch] lengths) => (float[batch, samples] wave) {{
    zero = Constant <value_ints = [0]> ()
    one = Constant <value_ints = [1]> ()
    two = Constant <value_ints = [2]> ()
    hop_length = Constant <value_ints = [{hop_length}]> ()
    always = Constant <value = bool {{1}}> ()
    n_batch = Shape <start = 0, end = 1> (mel)
    n_frames = Shape <start = 2> (mel)
    shortest = ReduceMin (lengths)
    is_full = Equal (shortest, n_frames)
    n_rows = Where (is_full, n_batch, one)
    n_turns = Div (n_batch, n_rows)
    last_turn = Squeeze (n_turns, zero)
    turns = Loop (last_turn, always) <
    body = turn (int64 index, bool before) => (bool again, float[rows, samples] padded)
    {{
        again = Identity (before)
        place = Unsqueeze (index, zero)
        next_place = Add (place, one)
        first_row = Mul (place, n_rows)
        end_row = Add (first_row, n_rows)
        rows = Slice (mel, first_row, end_row, zero)
        length = Slice (lengths, place, next_place, zero)
        network_mel = Slice (rows, zero, length, two)
        missing_frames = Sub (n_frames, length)
        missing = Mul (missing_frames, hop_length)
        none = Constant <value_ints = [0, 0, 0]> ()
        pads = Concat <axis = 0> (none, missing)
        padded = Pad (network_wave, pads)
    }}>
    n_samples = Mul (n_frames, hop_length)
    shape = Concat <axis = 0> (n_batch, n_samples)
    wave = Reshape (turns, shape)
}}
"""


def of_batches(network: Any, *, n_mels: int, hop_length: int) -> Any:
    """Complete an onnx.ModelProto: mel (B, n_mels, F) -> wave (B, F * hop), which is correct for whole batches of one
    length, to mel (B, n_mels, F), lengths (B,) -> wave (B, F * hop), each utterance as if it were alone.
    """
    from onnx import compose, parser  # take long to import

    network = compose.add_prefix(network, "network_")
    model = parser.parse_model(_BATCHES.format(n_mels=n_mels, hop_length=hop_length))
    del model.opset_import[:]
    model.opset_import.extend(network.opset_import)
    (loop,) = (node for node in model.graph.node if node.op_type == "Loop")
    turn = loop.attribute[0].g
    pad = turn.node.pop()
    turn.node.extend([*network.graph.node, pad])
    # Weights outside the loop would be as right, but onnxruntime chooses its fast kernels by weights in the same graph.
    turn.initializer.extend(network.graph.initializer)
    return model


def exports(network: Generator, config: ModelConfig, audio: AudioConfig) -> Exports:
    """HiFi-GAN as one part."""
    inputs: Shapes = {"mel": ("batch", config.n_mel_channels, "frames"), "lengths": ("batch",)}

    def onnx_form(quantized: bool) -> OnnxForm:
        complete = partial(of_batches, n_mels=config.n_mel_channels, hop_length=audio.hop_length)
        return OnnxForm(network, ("mel",), complete)

    part = Part(
        "",
        network,
        inputs,
        WAVE,
        random_examples(inputs, {"mel": lambda values: 2 * values - 5}),
        scriptable=True,
        onnx_form=onnx_form,
        quantization=Quantization(True, lambda mels: [(mel[None], torch.tensor([mel.size(1)])) for mel in mels]),
    )
    return Exports((part,), {"context_frames": context_frames(config)})


class ExportedNetwork(ExportedVocoder):
    """An exported generator, which makes the sound that the network does."""

    settings = Generator.settings
