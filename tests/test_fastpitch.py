"""FastPitch 1.0 agrees with its published implementation, and an utterance does not depend on its batch."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from golden_files import full_size_listings, listed, read_golden
from safetensors.torch import load_file
from torch import Tensor

from common.errors import InputError
from common.nn.layers import mask_from_lengths
from common.synthesis.utterances import Controls, MelOutput
from fastpitch.config import ModelConfig
from fastpitch.custom_transforms import pitch_transform_custom
from fastpitch.model import FastPitch, FastPitchBatch, to_torchscript
from fastpitch.prosody_transforms import PitchTransform

FOLDER = "fastpitch_1_0"
MODELS = listed("fastpitch_1_0/index.json", "models")
LJSPEECH = (218.14, 67.24)  # Hz; what the original takes for a model without statistics
SMALL = ModelConfig(
    symbols_embedding_dim=32,
    in_fft_output_size=32,
    out_fft_output_size=32,
    in_fft_n_layers=2,
    out_fft_n_layers=2,
    in_fft_n_heads=2,
    in_fft_d_head=8,
    out_fft_d_head=16,
    in_fft_conv1d_filter_size=48,
    out_fft_conv1d_filter_size=48,
    out_fft_conv1d_kernel_size=5,
    dur_predictor_filter_size=24,
    pitch_predictor_filter_size=24,
    n_speakers=3,
    p_in_fft_dropemb=0.1,
)


def published(folder: Path, name: str, **kind: bool) -> tuple[FastPitch, list[dict]]:
    """A published network with its weights, and its cases."""
    model = read_golden(folder / "index.json", "models", name)
    kind = {"mask_convolutions": False, "learned_alignment": folder.name == "fastpitch_1_1"} | kind
    network = FastPitch(ModelConfig(**read_golden(folder / model["config"]) | kind))
    network.load_state_dict(load_file(folder / model["state"]))
    return network.eval(), model["cases"]


def batch_of(
    tokens: Tensor,
    lengths: Tensor,
    *,
    n_frames: int,
    durations: Tensor | None = None,
    pitch: Tensor | None = None,
    speakers: Tensor | None = None,
) -> FastPitchBatch:
    """A batch whose mels, of ``n_frames``, are zeros, as nothing is learned from them."""
    mels, frame_lengths = torch.zeros(len(tokens), 80, n_frames), torch.full_like(lengths, n_frames)
    return FastPitchBatch(("",), tokens, lengths, mels, frame_lengths, durations, pitch, speakers=speakers)


def run_forward(network: FastPitch, given: dict[str, Tensor], kwargs: dict, n_frames: int) -> MelOutput:
    kwargs = dict(kwargs)
    batch = batch_of(
        given["in.text"],
        given["in.text_lens"],
        n_frames=n_frames,
        durations=given["in.dur_tgt"] if kwargs.pop("use_gt_durations") else None,
        pitch=given["in.pitch_tgt"] if kwargs.pop("use_gt_pitch") else None,
        speakers=given.get("in.speaker"),
    )
    return network(batch, **kwargs)


def assert_durations_close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=2e-5, rtol=1e-5)


def assert_close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", MODELS)
def test_teacher_forcing_and_prediction_give_the_published_numbers(folder: Path, name: str):
    network, cases = published(folder, name)
    for case in [case for case in cases if case["kind"] == "forward"]:
        expected = load_file(folder / case["file"])
        mel = expected["out.mel_out"].transpose(1, 2)
        out = run_forward(network, load_file(folder / case["inputs_file"]), case["kwargs"], mel.size(2))
        mask = expected["out.dec_mask"].transpose(1, 2)
        assert torch.equal(out.lengths, mask.sum((1, 2)))
        assert_close(out.mel, mel * mask)
        assert_close(out.log_durations, expected["out.log_dur_pred"])
        assert_close(out.pitch, expected["out.pitch_pred"])
        assert_durations_close(out.durations, expected["out.dur_pred"])


def pitch_transform_of(case: dict) -> PitchTransform | None:
    """A golden's transform, in which a custom one is the example's."""
    given = case.get("pitch_transform")
    custom = pitch_transform_custom if given and given.get("custom") else None
    return None if given is None else PitchTransform(**{**given, "custom": custom})


def set_statistics(network: FastPitch, case: dict, statistics: tuple[Tensor, Tensor]) -> None:
    """Gives the network the pitch statistics of a case: its own, or the original's default where they are 0."""
    buffers = case.get("override_buffers") or dict(zip(("pitch_mean", "pitch_std"), statistics, strict=True))
    mean, std = (buffers["pitch_mean"], buffers["pitch_std"]) if float(buffers["pitch_std"]) else LJSPEECH
    network.pitch_mean.fill_(float(mean))
    network.pitch_std.fill_(float(std))


def _shifts_padding_too(transform: PitchTransform) -> Callable[..., Tensor]:
    """The transform as the original applies it: to every position of the batch."""

    def apply(pitch: Tensor, lengths: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        if transform.custom:
            return (pitch_transform_custom(pitch * std + mean, lengths) - mean) / std
        everywhere = torch.full_like(lengths, pitch.size(1))
        return transform(pitch, everywhere, mean, std)

    return apply


def assert_infers_as_published(folder: Path, network: FastPitch, cases: list[dict]) -> None:
    """The network gives the numbers of all cases of inference, also those of version 1.1."""
    statistics = network.pitch_mean.clone(), network.pitch_std.clone()
    for case in [case for case in cases if case["kind"] == "infer"]:
        expected = load_file(folder / case["file"])
        given = load_file(folder / case["inputs_file"])
        transform, pitch = pitch_transform_of(case), expected.get("in.pitch_tgt")
        set_statistics(network, case, statistics)
        controls = Controls(
            **case["kwargs"],
            pitch_transform=None if transform is None else _shifts_padding_too(transform),
            durations=expected.get("in.dur_tgt"),
            pitch=None if pitch is None else pitch.flatten(1),
        )
        out = network.infer(given["in.text"], given["in.text_lens"], controls)
        assert torch.equal(out.lengths, expected["out.dec_lens"])
        assert torch.equal(out.frames.sum(1), out.lengths)
        assert_close(out.mel, expected["out.mel_out"] * mask_from_lengths(out.lengths).unsqueeze(1))
        assert_close(out.pitch, expected["out.pitch_pred"].flatten(1))
        assert_durations_close(out.durations, expected["out.dur_pred"])
        if "out.energy_pred" in expected:
            assert_close(out.energy, expected["out.energy_pred"])


@pytest.mark.parametrize("name", MODELS)
def test_inference_gives_the_published_numbers_with_every_control(folder: Path, name: str):
    assert_infers_as_published(folder, *published(folder, name))


def test_a_single_utterance_is_as_published_with_masked_convolutions_too(folder: Path):
    network, cases = published(folder, MODELS[0], mask_convolutions=True)
    alone = [case for case in cases if case["kind"] == "infer" and not case["override_buffers"]]
    given_of = {case["inputs_file"]: load_file(folder / case["inputs_file"]) for case in alone}
    alone = [case for case in alone if len(given_of[case["inputs_file"]]["in.text"]) == 1]
    assert alone
    for case in alone:
        expected, given = load_file(folder / case["file"]), given_of[case["inputs_file"]]
        transform = pitch_transform_of(case)
        durations, pitch = expected.get("in.dur_tgt"), expected.get("in.pitch_tgt")
        controls = Controls(**case["kwargs"], pitch_transform=transform, durations=durations, pitch=pitch)
        out = network.infer(given["in.text"], given["in.text_lens"], controls)
        assert_close(out.mel, expected["out.mel_out"])
        assert_close(out.pitch, expected["out.pitch_pred"])


def _published_loss(out: MelOutput, given: dict[str, Tensor]) -> Tensor:
    """The loss that the golden gradients are of: mel elements that happen to be zero are left out."""
    tokens = mask_from_lengths(given["in.dur_lens"])
    valid = given["in.mel_tgt"] != 0
    durations = torch.log1p(given["in.dur_tgt"].float())
    return (
        (out.mel - given["in.mel_tgt"])[valid].square().mean()
        + (out.log_durations - durations)[tokens].square().mean()
        + (out.pitch - given["in.pitch_tgt"])[tokens].square().mean()
    )


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_as_published(folder: Path, name: str):
    network, cases = published(folder, name)
    case = next(case for case in cases if case["kind"] == "grads")
    given = load_file(folder / case["inputs_file"])
    kwargs = {"use_gt_durations": True, "use_gt_pitch": True}
    loss = _published_loss(run_forward(network, given, kwargs, given["in.mel_tgt"].size(2)), given)
    torch.testing.assert_close(loss.item(), case["loss"], rtol=1e-6, atol=1e-5)
    assert_gradients(folder, network, loss, case)


def assert_gradients(folder: Path, network: FastPitch, loss: Tensor, case: dict) -> None:
    """The gradients of a loss are those of the case."""
    loss.backward()
    parameters = dict(network.named_parameters())
    expected = load_file(folder / case["file"])
    for key in case["params"]:
        golden = next(value for stored, value in expected.items() if stored.removeprefix("grad.") == key)
        torch.testing.assert_close(parameters[key].grad, golden, atol=2e-6, rtol=1e-4)
    for key, norm in case["grad_l2_norms_all"].items():
        assert parameters[key].grad.norm().item() == pytest.approx(norm, rel=1e-4, abs=2e-6), key


@pytest.mark.parametrize(("file", "options"), full_size_listings("fastpitch_1_0/full_size_keys*.json"))
def test_the_full_size_network_has_the_published_names_and_shapes(goldens: Path, file: str, options: set[str]):
    assert_is_as_listed(read_golden(goldens / file), options)


def assert_is_as_listed(published_keys: dict, options: set[str], **kind: bool) -> None:
    """The network of default options, but for the named ones, has the listed names and shapes."""
    wanted, default = published_keys["config"], ModelConfig(**kind)
    assert {key for key, value in wanted.items() if value != getattr(default, key)} == options
    config = replace(default, **{key: wanted[key] for key in options})
    with torch.device("meta"):
        network = FastPitch(config)
    parameters = dict(network.named_parameters())
    listed = [(item["key"], tuple(item["shape"]), item["type"]) for item in published_keys["state_dict"]]
    own = [
        (key, tuple(value.shape), "parameter" if key in parameters else "buffer")
        for key, value in network.state_dict().items()
    ]
    assert own == listed
    assert sum(parameter.numel() for parameter in parameters.values()) == published_keys["n_params"]


def small(**changes) -> FastPitch:
    """A small random voice whose durations are a few frames."""
    torch.manual_seed(7)
    network = FastPitch(replace(SMALL, **changes))
    with torch.no_grad():
        network.duration_predictor.fc.bias.fill_(1.3)
    network.pitch_mean.fill_(200.0)
    network.pitch_std.fill_(50.0)
    return network.eval()


def texts(*lengths: int) -> tuple[Tensor, Tensor]:
    """Random symbols of these lengths, with symbols (not zeros) in the padding."""
    generator = torch.Generator().manual_seed(sum(lengths))
    return torch.randint(1, 148, (len(lengths), max(lengths)), generator=generator), torch.tensor(lengths)


CONTROLS = {
    "plain": Controls(),
    "pace": Controls(pace=1.6, speaker=2),
    "slow": Controls(pace=0.4, max_duration=5),
    "shift": Controls(pitch_transform=PitchTransform(shift=60.0)),
    "all transforms": Controls(pitch_transform=PitchTransform(invert=True, amplify=2.0, shift=-40.0), pace=0.8),
    "custom": Controls(
        pitch_transform=PitchTransform(custom=pitch_transform_custom), speaker=torch.tensor([2, 0, 1, 2])
    ),
}


def assert_alone_as_in_any_batch(network: FastPitch, controls: Controls) -> None:
    """Utterances of one batch are spoken as each of them alone."""
    tokens, lengths = texts(23, 4, 1, 11)
    together = network.infer(tokens, lengths, controls)
    for item, length in enumerate(lengths.tolist()):
        speaker = controls.speaker if isinstance(controls.speaker, int) else controls.speaker[item : item + 1]
        one = slice(item, item + 1)
        alone = network.infer(tokens[one, :length], lengths[one], replace(controls, speaker=speaker))
        n_frames = int(alone.lengths)
        assert together.lengths[item] == n_frames
        assert_close(together.mel[item, :, :n_frames], alone.mel[0])
        assert not together.mel[item, :, n_frames:].any()
        assert_close(together.pitch[item, :length], alone.pitch[0])
        assert not together.pitch[item, length:].any()
        if alone.energy is not None:
            assert_close(together.energy[item, :length], alone.energy[0])


@pytest.fixture(params=["packed", "padded"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to compute a batch on a CPU."""
    if request.param == "padded":
        monkeypatch.setattr("fastpitch.transformer.FFTransformer._packs", lambda self, x: False)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("name", CONTROLS)
def test_an_utterance_alone_equals_itself_in_any_batch(name: str):
    assert_alone_as_in_any_batch(small(), CONTROLS[name])


def test_packed_rows_give_the_padded_network_and_its_gradients(monkeypatch: pytest.MonkeyPatch):
    network = small().double()
    tokens, lengths = texts(17, 1, 9, 2)
    durations = torch.randint(0, 4, tokens.shape, generator=torch.Generator().manual_seed(1))
    durations = durations.index_fill(1, torch.tensor([0]), 1) * mask_from_lengths(lengths)
    n_frames = int(durations.sum(1).max())
    batch = batch_of(tokens, lengths, speakers=torch.tensor([0, 1, 2, 1]), durations=durations, n_frames=n_frames)
    results = []
    for packs in (True, False):
        monkeypatch.setattr("fastpitch.transformer.FFTransformer._packs", lambda self, x, packs=packs: packs)
        network.zero_grad()
        out = network(batch)
        (out.mel.square().sum() + out.pitch.square().sum() + out.log_durations.sum()).backward()
        gradients = {key: p.grad.clone() for key, p in network.named_parameters()}
        results.append((out.mel.detach(), gradients))
    torch.testing.assert_close(*[mel for mel, _ in results], atol=1e-12, rtol=0)
    torch.testing.assert_close(*[gradients for _, gradients in results], atol=1e-10, rtol=1e-9)


@pytest.fixture(scope="module")
def scripted() -> tuple[FastPitch, torch.nn.Module]:
    network = small()
    return network, to_torchscript(network)


@pytest.mark.parametrize("lengths", [(1,), (23, 4, 1, 11)])
@pytest.mark.parametrize("name", CONTROLS)
def test_torchscript_speaks_as_the_network_does(scripted, name: str, lengths: tuple[int, ...]):
    network, script = scripted
    controls = CONTROLS[name]
    if isinstance(controls.speaker, Tensor):
        controls = replace(controls, speaker=controls.speaker[: len(lengths)])
    tokens, token_lengths = texts(*lengths)
    expected = network.infer(tokens, token_lengths, controls)
    out = script.infer(tokens, token_lengths, controls)
    assert torch.equal(out.frames, expected.frames)
    assert_close(out.mel, expected.mel)


def test_an_utterance_that_would_have_no_frame_gets_one():
    network = small()
    with torch.no_grad():
        network.duration_predictor.fc.weight.zero_()
        network.duration_predictor.fc.bias.fill_(-3.0)
    out = network.infer(*texts(7, 3))
    assert out.lengths.tolist() == [1, 1]
    assert torch.isfinite(out.mel).all()


def test_a_speaker_that_the_model_does_not_have_is_refused():
    with pytest.raises(InputError, match=r"^speaker 3: this checkpoint has speakers 0 to 2$"):
        small().infer(*texts(4), Controls(speaker=3))
