"""Sound through a trained vocoder: what the published networks make of a mel, whatever the batch, precision or form."""

import dataclasses
from pathlib import Path

import pytest
import soundfile
import tiny_voice
import torch
from torch import Tensor, nn

import inference
from common.audio.denoiser import BIAS_FRAMES, Denoiser
from common.audio.mel import MelExtractor
from common.audio.wav import load_wav, save_wav
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.config import AudioConfig, to_plain
from common.errors import InputError
from common.files import write_json
from common.precision import Precision
from common.synthesis.vocoder import NetworkVocoder
from common.torch_file import save_tensor
from hifigan.config import ModelConfig
from hifigan.model import Generator, build_networks

AUDIO = AudioConfig(hop_length=64, n_mels=8, framing="aligned", peak=0.95)
MODEL = ModelConfig(
    n_mel_channels=8,
    resblock="2",
    upsample_rates=(8, 8),
    upsample_kernel_sizes=(16, 16),
    upsample_initial_channel=16,
    resblock_kernel_sizes=(3, 5),
    resblock_dilation_sizes=((1, 2), (2, 6)),
)
ONE_STEP = 1 / 32768  # of 16 bits


def new_network(seed: int) -> Generator:
    torch.manual_seed(seed)
    return build_networks(MODEL, AUDIO, None, inference=True)["generator"]


def ready(seed: int) -> Generator:
    network = new_network(seed)
    network.prepare_for_inference()
    return network


@torch.no_grad()
def alone(network: Generator, mel: Tensor) -> Tensor:
    """The wave (F * hop,) of mel (n_mels, F), straight from the network."""
    return network.infer(mel[None])[0]


def vocoder_checkpoint(path: Path, audio: AudioConfig = AUDIO, **changes) -> Path:
    """A vocoder with random weights."""
    checkpoint = Checkpoint("HiFi-GAN", MODEL, audio, None, {"generator": new_network(0).state_dict()})
    save_checkpoint(path, dataclasses.replace(checkpoint, **changes))
    return path


@pytest.fixture
def mels(tmp_path: Path) -> dict[str, Tensor]:
    """Mels of several lengths in tmp_path, and a list of them, list.tsv."""
    generator = torch.Generator().manual_seed(0)
    mels = {str(n): torch.randn(8, n, generator=generator) - 4 for n in (7, 1, 30, 12)}
    for name, mel in mels.items():
        save_tensor(tmp_path / "given" / f"{name}.pt", mel)
    lines = ["mel\toutput", *(f"given/{name}.pt\t{name}" for name in mels)]
    (tmp_path / "list.tsv").write_text("\n".join(lines) + "\n")
    return mels


def argv(folder: Path, *options: str | Path) -> list[str]:
    words = ["-i", folder / "list.tsv", "-o", folder / "out", "--dataset-path", folder, "--fade-out", "0", *options]
    return [str(word) for word in words]


def spoken(folder: Path, *options: str | Path) -> dict[str, Tensor]:
    """The waves that the command line makes of the list."""
    assert inference.main(argv(folder, *options)) == 0
    return {path.stem: load_wav(path, sampling_rate=None) for path in (folder / "out").rglob("*.wav")}


def close(first: Tensor, second: Tensor, tolerance: float = ONE_STEP) -> None:
    torch.testing.assert_close(first, second, rtol=0, atol=tolerance)


@pytest.mark.parametrize("options", [(), ("-bs", "3"), ("--torchscript",)])
def test_each_mel_becomes_exactly_the_wave_that_the_network_makes_of_it_alone(tmp_path, mels, options):
    waves = spoken(tmp_path, "--hifigan", vocoder_checkpoint(tmp_path / "v.pt"), *options)
    assert waves.keys() == mels.keys()
    for name, mel in mels.items():
        expected = alone(ready(0), mel)
        assert len(waves[name]) == mel.size(1) * 64
        if "--torchscript" in options:
            close(waves[name], expected)
        else:
            assert torch.equal(waves[name] * 32768, torch.round(expected * 32768))


class Counting(nn.Module):
    """A network that keeps what it was given."""

    def __init__(self, network: Generator) -> None:
        super().__init__()
        self.network = network
        self.calls: list[tuple[tuple[int, ...], Tensor | None]] = []

    def infer(self, mel: Tensor, lengths: Tensor | None = None) -> Tensor:
        """As the network's."""
        self.calls.append((tuple(mel.shape), lengths))
        return self.network.infer(mel, lengths)


def on_gpu_terms(network: nn.Module, **options) -> NetworkVocoder:
    """A vocoder that takes whole batches, as on a GPU, here."""
    vocoder = NetworkVocoder(network, AUDIO, name="x", precision=Precision(), **options)
    vocoder.max_batch = None
    return vocoder


@pytest.mark.parametrize("strength", [0.0, 0.2])
def test_a_batch_of_several_lengths_is_spoken_at_once_and_each_as_if_alone(mels, strength):
    vocoder = on_gpu_terms(counting := Counting(ready(0)), denoising_strength=strength)
    counting.calls.clear()
    batch = nn.utils.rnn.pad_sequence([mel.t() for mel in mels.values()], batch_first=True).transpose(1, 2)
    lengths = [mel.size(1) for mel in mels.values()]
    together = vocoder.speak(batch + 0, lengths)
    ((shape, given),) = counting.calls
    assert (shape, given.tolist()) == ((4, 8, 30), lengths)
    for mel, wave in zip(mels.values(), together):
        close(wave, vocoder.speak(mel[None], [mel.size(1)])[0], 1e-6)
    assert all(lengths is None for _, lengths in counting.calls[1:])  # no masks where nothing is padded


def test_the_denoiser_subtracts_what_the_network_makes_of_zeros(tmp_path, mels):
    checkpoint = vocoder_checkpoint(tmp_path / "v.pt")
    waves = spoken(tmp_path, "--hifigan", checkpoint, "--denoising-strength", "0.3")
    denoiser = Denoiser(alone(ready(0), torch.zeros(8, BIAS_FRAMES)), AUDIO, strength=0.3)
    for name, mel in mels.items():
        plain = alone(ready(0), mel)
        close(waves[name], denoiser(plain[None])[0])
        assert (waves[name] - plain).abs().max() > 1e-3


def test_recordings_are_spoken_again_from_the_mels_that_the_vocoder_reads(tmp_path):
    generator = torch.Generator().manual_seed(0)
    recordings = [0.3 * torch.rand(n, generator=generator) for n in (3000, 4111)]
    for place, recording in enumerate(recordings):
        soundfile.write(tmp_path / f"r{place}.wav", recording.numpy(), 22050, subtype="PCM_16")
    (tmp_path / "list.tsv").write_text("wav\toutput\nr0.wav\t0\nr1.wav\t1\n")
    waves = spoken(tmp_path, "--hifigan", vocoder_checkpoint(tmp_path / "v.pt"))
    for place in range(2):
        read = load_wav(tmp_path / f"r{place}.wav", sampling_rate=22050)
        mel = MelExtractor(AUDIO)(read[None])[0]  # aligned, of the recording scaled to 0.95
        assert len(waves[str(place)]) == len(read) // 64 * 64
        close(waves[str(place)], alone(ready(0), mel))


def test_recordings_that_do_not_fit_the_vocoder_are_named_with_their_line(tmp_path):
    vocoder = vocoder_checkpoint(tmp_path / "v.pt")
    save_wav(tmp_path / "good.wav", torch.rand(3000), sampling_rate=22050)
    save_wav(tmp_path / "fast.wav", torch.rand(3000), sampling_rate=44100)
    save_wav(tmp_path / "short.wav", torch.rand(200), sampling_rate=22050)
    for name, message in {
        "fast.wav": "fast.wav: 44100 Hz, expected 22050; ",
        "short.wav": "short.wav: 200 samples, a mel needs at least 481 (",
    }.items():
        (tmp_path / "list.tsv").write_text(f"wav\toutput\ngood.wav\ta\n{name}\tb\n")
        with pytest.raises(InputError) as caught:
            spoken(tmp_path, "--hifigan", vocoder)
        assert message in str(caught.value)
        assert f"{tmp_path / 'list.tsv'}:3" in str(caught.value)
        assert not (tmp_path / "out").exists()


def test_a_voice_of_other_mels_is_refused_with_every_field_that_differs(tmp_path):
    vocoder = vocoder_checkpoint(tmp_path / "v.pt")
    model = dataclasses.replace(tiny_voice.MODEL, n_mel_channels=8)
    audio = dataclasses.replace(AUDIO, sampling_rate=16000, mel_fmax=None)
    voice = tiny_voice.save_voice(tmp_path / "voice.pt", model=model, audio=audio)
    (tmp_path / "list.tsv").write_text("a.wav|Go on.\n")
    with pytest.raises(InputError, match=r"sampling_rate: 16000 \(.*mel_fmax: None \(") as caught:
        spoken(tmp_path, "--hifigan", vocoder, "--fastpitch", voice)
    assert str(voice) in str(caught.value) and str(vocoder) in str(caught.value)


OTHERS = {"framing": "centered", "peak": None}


def test_differences_in_framing_and_peak_alone_can_be_accepted(tmp_path, mels):
    vocoder = vocoder_checkpoint(tmp_path / "v.pt")
    write_json(tmp_path / "given" / "audio.json", to_plain(dataclasses.replace(AUDIO, **OTHERS)))
    with pytest.raises(InputError) as caught:
        spoken(tmp_path, "--hifigan", vocoder)
    assert "framing: 'centered' (" in str(caught.value) and "peak: None (" in str(caught.value)
    assert "scripts/fine_tune.sh" in str(caught.value)
    assert "--accept-audio-differences framing peak" in str(caught.value)
    with pytest.raises(InputError, match=r"peak: None .*--accept-audio-differences framing peak$"):
        spoken(tmp_path, "--hifigan", vocoder, "--accept-audio-differences", "framing")
    waves = spoken(tmp_path, "--hifigan", vocoder, "--accept-audio-differences", "framing", "peak")
    for name, mel in mels.items():
        close(waves[name], alone(ready(0), mel))  # nothing is rescaled


def test_what_a_published_file_does_not_record_is_not_held_against_it(tmp_path, mels, capsys):
    vocoder = vocoder_checkpoint(tmp_path / "v.pt", assumed=("framing", "peak"))
    write_json(tmp_path / "given" / "audio.json", to_plain(dataclasses.replace(AUDIO, **OTHERS)))
    assert len(spoken(tmp_path, "--hifigan", vocoder)) == len(mels)
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note")]
    assert len(notes) == 1 and "framing and peak" in notes[0]
    write_json(tmp_path / "given" / "audio.json", to_plain(dataclasses.replace(AUDIO, mel_fmax=None, **OTHERS)))
    with pytest.raises(InputError) as caught:
        spoken(tmp_path, "--hifigan", vocoder)
    assert "mel_fmax: None" in str(caught.value) and "framing" not in str(caught.value)


def test_sound_that_is_not_finite_is_named_by_its_phrase(tmp_path, mels):
    broken = new_network(0).state_dict()
    broken["conv_pre.bias"].fill_(3e38)  # finite, and its sums are not
    vocoder = vocoder_checkpoint(tmp_path / "v.pt", networks={"generator": broken})
    with pytest.raises(InputError, match=r"list\.tsv:4: the sound made for it is not finite; .* \S*v\.pt is damaged"):
        spoken(tmp_path, "--hifigan", vocoder)
    assert not list((tmp_path / "out").glob("*.wav"))
