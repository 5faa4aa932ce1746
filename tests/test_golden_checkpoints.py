"""Every checkpoint file of the goldens, converted by the public command, gives the outputs of its authors' code."""

import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import soundfile
import torch
from golden_files import GOLDENS, read_golden
from safetensors.torch import load_file
from tiny_waveglow import golden_noise
from torch import Tensor

import inference
from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.layout import is_state
from common.checkpoints.loading import load_networks, new_networks
from common.checkpoints.reading import load_checkpoint
from common.errors import CheckpointError
from common.nn.layers import SeededNoise, mask_from_lengths
from common.recognition.recognizer import SpeechToText
from common.synthesis.speech import Prosody, SymbolProsody, UtteranceProsody, WordProsody
from common.text.front_end import TextFrontEnd
from scripts.checkpoint_tools import convert, inspect
from tacotron2.decoder import MASK_CHUNK, PRENET_LAYERS

CPU = torch.device("cpu")
QUANTUM = 2**-15  # of 16-bit sound


def _is_checkpoint(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(2)
    return path.suffix in ("", ".pt", ".pth") and start in (b"PK", b"\x80\x02")


FILES = sorted(path for path in GOLDENS.rglob("*") if path.is_file() and _is_checkpoint(path))


@cache
def expected_of(path: Path) -> dict[str, Tensor]:
    """The stored outputs for a file: beside it by its name, or one level up for a folder of files."""
    own = path.with_name(f"{path.stem}_expected.safetensors")
    if own.is_file():
        return load_file(own)
    for folder in path.parents:
        if (folder / "checkpoints_expected.safetensors").is_file():
            return load_file(folder / "checkpoints_expected.safetensors")
        if folder == GOLDENS:
            break
    return {}


def network_of(checkpoint: Checkpoint, *, ema: bool = False):
    networks, _ = load_networks(checkpoint, ema=ema, device=CPU)
    return next(iter(networks.values()))


def check_fastpitch(source: Path, ours: Path, tmp_path: Path) -> int:
    """Mels, durations and pitch of the network, and the mels that inference.py writes of the same symbols."""
    expected, checkpoint = expected_of(source), load_checkpoint(ours)
    tokens = expected["in.text"]
    weights = [name for name in ("state_dict", "ema_state_dict") if f"{name}.mel_out" in expected]
    for name in weights:
        ema = name == "ema_state_dict"
        out = network_of(checkpoint, ema=ema).infer(tokens, torch.tensor([tokens.size(1)]))
        assert torch.equal(out.lengths, expected[f"{name}.dec_lens"])
        torch.testing.assert_close(out.mel, expected[f"{name}.mel_out"], atol=1e-5, rtol=0)
        torch.testing.assert_close(out.durations, expected[f"{name}.dur_pred"], atol=2e-5, rtol=1e-5)
        frames = [math.floor(duration + 0.5) for duration in expected[f"{name}.dur_pred"][0].tolist()]
        names = [TextFrontEnd(checkpoint.text).symbols[token] for token in tokens[0]]
        rows = tuple(SymbolProsody(symbol=one, frames=count) for one, count in zip(names, frames, strict=True))
        utterance = UtteranceProsody(text="golden", words=(WordProsody(text="golden", symbols=rows),))
        rate, hop = checkpoint.audio.sampling_rate, checkpoint.audio.hop_length
        table = Prosody(
            sampling_rate=rate, hop_length=hop, symbol_set=checkpoint.text.symbol_set, utterances=(utterance,)
        )
        table.save(tmp_path / "prosody.json")
        words = ["--prosody", str(tmp_path / "prosody.json"), "-o", str(tmp_path / "a.wav"), "--save-mels", "--quiet"]
        assert inference.main(["--fastpitch", str(ours), *words, "--ema" if ema else "--no-ema"]) == 0
        (written,) = tmp_path.rglob("mels/*.pt")
        torch.testing.assert_close(torch.load(written), expected[f"{name}.mel_out"][0], atol=1e-5, rtol=0)
    return len(weights)


def check_hifigan(source: Path, ours: Path, tmp_path: Path) -> int:
    """The sounds that inference.py writes of the stored mels."""
    expected = expected_of(source)
    owner = "nvidia" if source.parts[-2].startswith("nvidia") else "jik876"
    kinds = {f"output.{owner}_generator": "--no-ema", f"output.{owner}_gen_ema": "--ema"}
    if not load_checkpoint(ours).has_ema:
        kinds.popitem()
    numbers = range(len(expected["input.mel"]))
    lines = [f"{index}.wav\t{index}.pt\n" for index in numbers]
    (tmp_path / "list.tsv").write_text("".join(["output\tmel\n", *lines]))
    for index, mel in enumerate(expected["input.mel"]):
        torch.save(mel.clone(), tmp_path / f"{index}.pt")
    words = ["-i", str(tmp_path / "list.tsv"), "--dataset-path", str(tmp_path), "--fade-out", "0", "--quiet"]
    for key, option in kinds.items():
        assert inference.main(["--hifigan", str(ours), "-o", str(tmp_path / "out"), *words, option]) == 0
        waves = [soundfile.read(tmp_path / "out" / f"{index}.wav", dtype="float32")[0] for index in numbers]
        spoken = torch.stack([torch.from_numpy(wave) for wave in waves])
        torch.testing.assert_close(spoken, expected[key][:, 0], atol=2 * QUANTUM, rtol=0)
    return len(kinds)


def check_tacotron2(source: Path, ours: Path, tmp_path: Path) -> int:
    """The network's mels with the golden's dropout masks and padding, which inference.py cannot be given."""
    tensors, network = expected_of(source), network_of(load_checkpoint(ours))
    object.__setattr__(network.config, "mask_convolutions", False)
    network.postnet.mask_convolutions = False
    masks = torch.ones(MASK_CHUNK, PRENET_LAYERS, 1, network.config.prenet_dim)
    out = network.infer(tensors["input.text"], tensors["input.input_lengths"], draw_masks=lambda: masks)
    assert out.lengths.tolist() == tensors["output.mel_lengths"].tolist()
    spoken = mask_from_lengths(out.lengths, out.mel.size(2)).unsqueeze(1)
    stored = tensors["output.mel_outputs_postnet"][:, :, : out.mel.size(2)] * spoken
    torch.testing.assert_close(out.mel, stored, atol=5e-5, rtol=0)
    return 1


def check_waveglow(source: Path, ours: Path, tmp_path: Path) -> int:
    """The sounds that inference.py writes of the stored mels, with the stored noise in place of its own."""
    if "_ddp" in source.name:
        return 0  # other weights, without stored outputs
    given = load_file(GOLDENS / "waveglow" / "waveglow_infer.safetensors")
    noise = golden_noise(given, 0)
    sigma = re.search(r"sigma ([\d.]+)", read_golden(GOLDENS / "waveglow" / "checkpoints.json", "expected"))[1]
    words = ["--waveglow", str(ours), "--sigma-infer", sigma, "--fade-out", "0", "--quiet"]
    for index, expected in enumerate(expected_of(source)["output.audio"]):
        (tmp_path / "list.tsv").write_text(f"output\tmel\n{index}.wav\tmel.pt\n")
        torch.save(given["input.mel0"][index].clone(), tmp_path / "mel.pt")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SeededNoise, "__call__", lambda *_, drawn=noise[index : index + 1], **__: drawn)
            listed = ["-i", str(tmp_path / "list.tsv"), "--dataset-path", str(tmp_path), "-o", str(tmp_path)]
            assert inference.main([*words, *listed]) == 0
        spoken = torch.from_numpy(soundfile.read(tmp_path / f"{index}.wav", dtype="float32")[0])
        expected = expected / expected.abs().max().clamp(min=1)  # sound files are scaled to at most 1
        torch.testing.assert_close(spoken, expected, atol=2 * QUANTUM, rtol=0)
    return 1


def check_recordings(network: SpeechToText, ours: Path, saved: Path, weights: str) -> None:
    """The log-probabilities that inference.py writes of the stored recordings are the network's of their features."""
    stored = load_file(GOLDENS / "jasper" / "features.safetensors")
    clips = read_golden(GOLDENS / "jasper" / "features.json", "clips")
    recordings = [str(GOLDENS / "jasper" / "audio" / f"{name}_16k.flac") for name in clips]
    words = ["--jasper", str(ours), "-i", *recordings, "--save-logits", str(saved), "--no-trim-silence", "--quiet"]
    assert inference.main([*words, weights]) == 0
    for log_probs, (clip, facts) in zip(torch.load(saved), clips.items(), strict=True):
        expected = network.infer(stored[f"output.{clip}"][None], torch.tensor([facts["feat_len"]]))
        assert len(log_probs) == int(expected.lengths)
        torch.testing.assert_close(log_probs, expected.log_probs[0, : len(log_probs)], atol=2e-3, rtol=0)


def check_jasper(source: Path, ours: Path, tmp_path: Path) -> int:
    """The network's log-probabilities of random features, and those that inference.py writes of recordings."""
    if "v1" in source.name:
        return 0
    tensors, checkpoint = expected_of(source), load_checkpoint(ours)
    kinds = {"best": False} if "best" in source.name else {"state_dict": False, "ema_state_dict": True}
    for name, ema in kinds.items():
        network = network_of(checkpoint, ema=ema)
        out = network.infer(tensors["input.x"], tensors["input.lens"])
        torch.testing.assert_close(out.log_probs, tensors[f"output.{name}"], atol=3e-5, rtol=0)
        if (GOLDENS / "jasper" / "audio").is_dir():
            check_recordings(network, ours, tmp_path / f"{name}.pt", "--ema" if ema else "--no-ema")
    return len(kinds)


CHECKS: dict[str, Callable[[Path, Path, Path], int]] = {
    "FastPitch": check_fastpitch,
    "HiFi-GAN": check_hifigan,
    "Tacotron2": check_tacotron2,
    "WaveGlow": check_waveglow,
    "Jasper": check_jasper,
}


def test_there_are_checkpoints_of_every_model():
    folders = {path.relative_to(GOLDENS).parts[0] for path in FILES}
    assert folders == {"fastpitch_1_0", "fastpitch_1_1", "hifigan", "jasper", "tacotron2", "waveglow"}


@pytest.mark.parametrize("source", FILES, ids=lambda path: str(path.relative_to(GOLDENS)))
@torch.no_grad()
def test_a_golden_checkpoint_gives_its_outputs_once_converted(source: Path, tmp_path: Path):
    ours = tmp_path / "ours.pt"
    if source.name.startswith(("do_", "hifigan_discrim")):
        with pytest.raises(CheckpointError, match="only HiFi-GAN's discriminators"):
            convert([str(source), str(ours)])
        return
    convert([str(source), str(ours)])
    assert torch.load(ours, weights_only=True)["format"] == 1
    inspect([str(ours)])
    checkpoint = load_checkpoint(ours)
    assert checkpoint.layout == "ours" and all(map(is_state, checkpoint.networks.values()))
    if "full_shapes" in str(source):  # with made-up constants, for which no outputs are stored
        networks = new_networks(checkpoint, where="golden")
        for name, state in checkpoint.networks.items():
            shapes = {key: value.shape for key, value in networks[name].state_dict().items()}
            assert {key: value.shape for key, value in state.items()} == shapes
        return
    check = CHECKS[checkpoint.model]
    n_checked = check(source, ours, tmp_path)
    assert n_checked or source.name.endswith(("_ddp.pt", "v1_keys.pt"))
