"""Exported Tacotron 2: its parts agree with PyTorch, and speak together in place of the checkpoint."""

import functools
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import soundfile
import tiny_tacotron2
import torch
from tiny_tacotron2 import save_voice, speaking_network, tiny_batch

import inference
from common.checkpoints.exported import OnnxRunner
from common.checkpoints.exporting import write_onnx
from common.checkpoints.loading import load_for_inference, open_checkpoint
from common.errors import CheckpointError, OptionError
from common.nn.layers import mask_from_lengths
from common.synthesis.utterances import Controls, MelOutput
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from scripts import checkpoint_tools
from tacotron2.arg_parser import InferenceOptions
from tacotron2.decoder import MASK_CHUNK, PRENET_LAYERS, PrenetMasks
from tacotron2.export import ExportedNetwork, exports
from tacotron2.inference import Inference

CPU = torch.device("cpu")
PARTS = ("encoder", "decoder", "postnet")
N_SYMBOLS = TextFrontEnd(TextConfig()).n_symbols
BATCH = tiny_batch([(5, 1), (11, 1), (1, 1), (8, 1), (3, 1), (14, 1)])
TEXT = "Hello."
PRENET_DIM = speaking_network().config.prenet_dim
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
    "seed": Controls(seed=OTHER_SEED),
    "steps of more than one draw of masks": Controls(options=InferenceOptions(max_decoder_steps=MASK_CHUNK + 6)),
    "few steps": Controls(options=InferenceOptions(max_decoder_steps=2)),
    "threshold": Controls(options=InferenceOptions(gate_threshold=0.6)),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_exported_parts_speak_as_the_network_does(folder: Path, name: str):
    tokens, lengths = BATCH.tokens, BATCH.token_lengths
    expected, made = (
        network(folder / one).infer(tokens, lengths, CONTROLS[name]) for one in ("voice.pt", "voice.encoder.onnx")
    )
    assert len(set(expected.lengths.tolist())) > 2 or name == "few steps"
    assert_same_speech(made, expected)


def test_an_utterance_is_the_same_alone_and_masks_may_differ_between_utterances(folder: Path):
    voice, expected = network(folder / "voice.decoder.onnx"), network(folder / "voice.pt")
    together = voice.infer(BATCH.tokens, BATCH.token_lengths)
    for row, length in enumerate(BATCH.token_lengths.tolist()):
        alone = voice.infer(BATCH.tokens[row : row + 1, :length], BATCH.token_lengths[row : row + 1])
        n_frames = int(together.lengths[row])
        assert alone.lengths.tolist() == [n_frames]
        torch.testing.assert_close(alone.mel[0], together.mel[row, :, :n_frames], atol=1e-4, rtol=0)
    shape = (MASK_CHUNK, PRENET_LAYERS, len(BATCH.tokens), PRENET_DIM)
    masks = (torch.rand(shape, generator=torch.Generator().manual_seed(3)) > 0.5) * 2.0
    outputs = [one.infer(BATCH.tokens, BATCH.token_lengths, draw_masks=lambda: masks) for one in (voice, expected)]
    assert_same_speech(*outputs)
    assert outputs[0].lengths.tolist() != together.lengths.tolist()


@pytest.mark.parametrize("case", [case for case in tiny_tacotron2.INFERENCES if case.startswith("batch")])
def test_exported_parts_give_the_published_outputs(goldens: Path, tmp_path: Path, case: str):
    published, given, masks, expected = tiny_tacotron2.inference_case(goldens / "tacotron2", case)
    runners = {}
    for part in exports(published, published.config, None).parts:
        write_onnx(tmp_path / part.name, part, {})
        runners[part.name] = OnnxRunner(tmp_path / part.name, part.outputs)
    voice = ExportedNetwork(runners, published.config, {}, CPU)
    out = voice.infer(*given, draw_masks=lambda: masks)
    assert out.lengths.tolist() == expected["mel_lengths"].tolist()
    spoken = mask_from_lengths(out.lengths, out.mel.size(2)).unsqueeze(1)
    mel = expected["mel_outputs_postnet"][:, :, : out.mel.size(2)] * spoken
    torch.testing.assert_close(out.mel, mel, atol=5e-5, rtol=0)


def test_a_loop_in_numpy_speaks_the_three_files(folder: Path):
    sessions = {part: onnxruntime.InferenceSession(folder / f"voice.{part}.onnx") for part in PARTS}
    tokens, lengths = BATCH.tokens[1:2, :11].numpy(), BATCH.token_lengths[1:2].numpy()
    expected = network(folder / "voice.pt").infer(BATCH.tokens[1:2, :11], BATCH.token_lengths[1:2])
    description = open_checkpoint(folder / "voice.decoder.onnx").exported.description
    masks = PrenetMasks(PRENET_DIM, seed=0).draw(CPU).numpy()
    assert set(np.unique(masks)) == {0, 1 / (1 - description["prenet_dropout"])}

    def run(part: str, inputs: dict) -> dict:
        names = [one.name for one in sessions[part].get_outputs()]
        return dict(zip(names, sessions[part].run(names, inputs)))

    encoded = run("encoder", {"tokens": tokens, "lengths": lengths})
    states = [name.removeprefix("next_") for name in description["outputs"] if name.startswith("next_")]
    sizes = {"batch": 1, "tokens": tokens.shape[1]}
    state = {
        name: np.zeros([sizes.get(size, size) for size in description["inputs"][name]], np.float32) for name in states
    }
    frames = []
    for mask in masks:
        out = run("decoder", {"prenet_masks": mask, **state, **encoded, "lengths": lengths})
        state = {name: out[f"next_{name}"] for name in states}
        frames.append(state["frame"])
        if out["gate"][0] > 0:  # a probability above 0.5
            break
    mel = run("postnet", {"mel": np.stack(frames, 2), "lengths": np.array([len(frames)])})["refined_mel"]
    assert len(frames) == expected.lengths.item() + 1
    np.testing.assert_allclose(mel[:, :, :-1], expected.mel, atol=1e-4)


def test_inference_speaks_any_part_as_the_checkpoint(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture):
    runs = []
    for name in ("voice.pt", "voice.encoder.onnx", "voice.postnet.onnx", "voice.decoder.onnx"):
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
    assert error_of(postnet).startswith(f"{decoder}: not the decoder of the checkpoint of {postnet}")
    decoder.write_bytes(content)
    encoder.rename(tmp_path / "my_encoder")
    assert error_of(decoder).startswith(f"{encoder}: no such file")
