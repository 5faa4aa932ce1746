"""A voice that knows phonemes reads as it was trained, unless the options say otherwise; and it trains so."""

import dataclasses
import wave
from pathlib import Path

import tiny_voice
import torch
from torch import Tensor

import inference
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.config import AudioConfig
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from fastpitch.model import build_networks
from tacotron2.arg_parser import TrainingOptions
from tacotron2.data_function import Tacotron2Dataset

MODEL = dataclasses.replace(tiny_voice.SMALL, n_symbols=148)
ENGLISH = TextConfig(cleaners=("english_cleaners_v3",), p_arpabet=0.5)
LINE = "Seven small ships came home with fish, bread and cheese."


def frames_of(folder: Path, text: TextConfig, line: str, *options: str) -> int:
    """Frames that a voice of exactly one frame a symbol speaks: how many symbols it read."""
    n_symbols = TextFrontEnd(text).n_symbols
    network = build_networks(dataclasses.replace(MODEL, n_symbols=n_symbols), AudioConfig(), text)["fastpitch"]
    with torch.no_grad():
        network.duration_predictor.fc.weight.zero_()
        network.duration_predictor.fc.bias.fill_(0.6931)  # log(1 + 1)
    weights = {"fastpitch": network.state_dict()}
    config = dataclasses.replace(MODEL, n_symbols=n_symbols)
    save_checkpoint(folder / "voice.pt", Checkpoint("FastPitch", config, AudioConfig(), text, weights))
    (folder / "phrases.txt").write_text(f"{line}\n", encoding="utf-8")
    paths = ["-i", str(folder / "phrases.txt"), "-o", str(folder / "out"), "--fastpitch", str(folder / "voice.pt")]
    assert inference.main([*paths, "--save-mels", "--no-audio", *options]) == 0
    mel: Tensor = torch.load(folder / "out" / "mels" / "audio_0001.pt")
    return mel.size(1)


def test_a_voice_trained_with_any_phones_gets_all_of_them(tmp_path: Path) -> None:
    letters = len(TextFrontEnd(dataclasses.replace(ENGLISH, p_arpabet=0.0)).encode(LINE))
    phones = len(TextFrontEnd(ENGLISH).encode(LINE))
    assert phones < letters
    assert frames_of(tmp_path, ENGLISH, LINE) == phones
    assert frames_of(tmp_path, ENGLISH, LINE, "--p-arpabet", "0") == letters


def test_tacotron2_reads_other_words_as_phones_in_each_epoch(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1, 2, 22050, 0, "NONE", ""))
        file.writeframes(bytes(2 * 22050))
    (tmp_path / "list.txt").write_text(f"a.wav|{LINE}\n")

    def drawn(epoch: int, seed: int = 1, p: float = 0.5) -> list[int]:
        text = dataclasses.replace(ENGLISH, p_arpabet=p)
        options = TrainingOptions(dataset_path=tmp_path, seed=seed)
        dataset = Tacotron2Dataset(options, tmp_path / "list.txt", audio=AudioConfig(), text=text)
        return dataset.draw(0, epoch=epoch).tokens[0].tolist()

    assert drawn(1) == drawn(1)
    assert len({tuple(drawn(1)), tuple(drawn(2)), tuple(drawn(1, seed=2))}) == 3
    assert drawn(1, p=1.0) == drawn(2, p=1.0)
