"""Exported Tacotron 2: its parts agree with PyTorch, and speak together in place of the checkpoint."""

import functools
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
import tiny_tacotron2
import torch
from tiny_tacotron2 import save_voice, speaking_network, tiny_batch

import inference
from common.checkpoints.exported import onnx_runner
from common.checkpoints.exporting import write_onnx
from common.checkpoints.loading import load_for_inference, open_checkpoint
from common.errors import CheckpointError, OptionError
from common.nn.layers import mask_from_lengths
from common.synthesis.utterances import Controls, MelOutput
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from scripts import checkpoint_tools
from tacotron2.arg_parser import InferenceOptions
from tacotron2.decoder import MASK_CHUNK
from tacotron2.export import ExportedNetwork, exports
from tacotron2.model import Inference

CPU = torch.device("cpu")
PARTS = ("encoder", "decoder", "postnet")
N_SYMBOLS = TextFrontEnd(TextConfig()).n_symbols
BATCH = tiny_batch([(5, 1), (11, 1), (1, 1), (8, 1), (3, 1), (14, 1)])
TEXT = "Hello."
SEED = 12  # of a network whose utterances of BATCH end at different frames
OTHER_SEED = 7  # of dropout masks


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voice as checkpoint and in ONNX."""
    made = tmp_path_factory.mktemp("exported")
    save_voice(made / "voice.pt", speaking_network(seed=SEED, n_symbols=N_SYMBOLS))
    for kind in ("onnx", "torchscript"):  # whose difference from PyTorch the command measures
        checkpoint_tools.export([str(made / "voice.pt"), "--format", kind])
    return made


@functools.cache
def network(path: Path) -> Inference:
    """What infers."""
    return load_for_inference(open_checkpoint(path), device=CPU)[0]


def assert_same_speech(made: MelOutput, expected: MelOutput) -> None:
    """Whole numbers are equal, and mels and alignments close."""
    for name in ("lengths", "finished", "frames"):
        assert torch.equal(getattr(made, name), getattr(expected, name)), name
    torch.testing.assert_close(made.mel, expected.mel, atol=1e-4, rtol=0)
    torch.testing.assert_close(made.alignments, expected.alignments, atol=1e-4, rtol=0)


CONTROLS = {
    "none": Controls(),
    "many steps": Controls(seed=OTHER_SEED, options=InferenceOptions(max_decoder_steps=MASK_CHUNK + 6)),
    "few steps": Controls(options=InferenceOptions(max_decoder_steps=2, gate_threshold=0.6)),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_exported_parts_speak_as_the_network_does(folder: Path, name: str):
    tokens, lengths = BATCH.tokens, BATCH.token_lengths
    expected, made = (
        network(folder / one).infer(tokens, lengths, CONTROLS[name]) for one in ("voice.pt", "voice.encoder.onnx")
    )
    assert len(set(expected.lengths.tolist())) > 2 or name == "few steps"
    assert_same_speech(made, expected)


@pytest.mark.parametrize("case", [case for case in tiny_tacotron2.INFERENCES if case.startswith("batch")])
def test_exported_parts_give_the_published_outputs(goldens: Path, tmp_path: Path, case: str):
    published, given, masks, expected = tiny_tacotron2.inference_case(goldens / "tacotron2", case)
    runners = {}
    for part in exports(published, published.config, None).parts:
        write_onnx(tmp_path / part.name, part, {})
        runners[part.name] = onnx_runner(tmp_path / part.name, part.outputs)
    voice = ExportedNetwork(runners, published.config, {}, CPU)
    out = voice.infer(*given, draw_masks=lambda: masks)
    assert out.lengths.tolist() == expected["mel_lengths"].tolist()
    spoken = mask_from_lengths(out.lengths, out.mel.size(2)).unsqueeze(1)
    mel = expected["mel_outputs_postnet"][:, :, : out.mel.size(2)] * spoken
    torch.testing.assert_close(out.mel, mel, atol=5e-5, rtol=0)


def test_inference_speaks_any_part_as_the_checkpoint(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture):
    runs = []
    for name in ("voice.pt", "voice.postnet.onnx"):
        for options in (f"--seed {OTHER_SEED}", "--max-decoder-steps 12 --gate-threshold 0.9"):
            words = ["--tacotron2", str(folder / name), "--text", TEXT, *options.split(), "--griffin-lim-iters", "2"]
            status = inference.main([*words, "--save-prosody", "-o", str(tmp_path)])
            runs.append((status, capsys.readouterr().err, soundfile.read(tmp_path / "speech.wav")[0]))
    assert [status for status, *_ in runs[:2]] == [0, 1] and "cut after 12 frames" in runs[1][1]
    for index, (status, errors, sound) in enumerate(runs):
        expected = runs[index % 2]
        assert (status, errors, len(sound)) == (*expected[:2], len(expected[2]))
        np.testing.assert_allclose(sound, expected[2], atol=1e-3)


def error_of(path: Path) -> str:
    """The one line that loading a file ends with."""
    with pytest.raises((CheckpointError, OptionError)) as caught:
        load_for_inference(open_checkpoint(path), device=CPU)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_part_or_one_of_another_kind_is_named(folder: Path, tmp_path: Path):
    for part in PARTS:
        shutil.copy(folder / f"voice.{part}.onnx", tmp_path)
    encoder, decoder, postnet = (tmp_path / f"voice.{part}.onnx" for part in PARTS)
    content = decoder.read_bytes()
    decoder.unlink()
    assert error_of(encoder).startswith(f"{decoder}: no such file, the decoder that belongs to {encoder}")
    shutil.copy(encoder, decoder)
    assert error_of(postnet).startswith(f"{decoder}: not the decoder that belongs to {postnet}")
    decoder.write_bytes(content)
    encoder.rename(tmp_path / "my_encoder")
    assert error_of(decoder).startswith(f"{encoder}: no such file")
