"""FastPitch 1.0 and 1.1 agree with their published implementations, and an utterance does not depend on its batch."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from golden_files import checkpoint_layouts, full_size_listings, listed, read_golden
from safetensors.torch import load_file
from tiny import padded_priors
from torch import Tensor

from common.checkpoints.loading import load_networks
from common.checkpoints.reading import load_checkpoint, read_published
from common.config import AudioConfig
from common.distributed import Ranks
from common.errors import InputError
from common.nn.layers import mask_from_lengths
from common.synthesis.utterances import Controls
from common.text.front_end import TextFrontEnd
from common.training.engine import Engine
from common.training.optim import Optimization
from common.training.options import RunOptions
from fastpitch.aligner import binarization_sum, forward_sum_losses
from fastpitch.arg_parser import TrainingOptions
from fastpitch.config import ModelConfig
from fastpitch.custom_transforms import pitch_transform_custom
from fastpitch.loss_function import FastPitchObjective
from fastpitch.model import FastPitch, FastPitchBatch, FastPitchOutput
from fastpitch.prosody import PitchTransform

VERSIONS = ("fastpitch_1_0", "fastpitch_1_1")
MODELS = [(version, name) for version in VERSIONS for name in listed(f"{version}/index.json", "models")]
of_every_model = pytest.mark.parametrize(("version", "name"), MODELS)
LJSPEECH = (218.14, 67.24)  # Hz; what the original takes for a model without statistics


def published(folder: Path, name: str, **kind: bool) -> tuple[FastPitch, list[dict]]:
    """A published network of a version's folder with its weights, and its cases."""
    model = read_golden(folder / "index.json", "models", name)
    kind = {"mask_convolutions": False, "learned_alignment": folder.name == "fastpitch_1_1"} | kind
    network = FastPitch(ModelConfig(**read_golden(folder / model["config"]) | kind))
    network.load_state_dict(load_file(folder / model["state"]))
    return network.eval(), model["cases"]


def run_forward(network: FastPitch, given: dict[str, Tensor], case: dict, n_frames: int) -> FastPitchOutput:
    """A training pass of version 1.1, or one of 1.0 that makes ``n_frames``."""
    kwargs = dict(case.get("kwargs") or {})
    use_pitch, tokens, lengths = kwargs.pop("use_gt_pitch", True), given["in.text"], given["in.text_lens"]
    mels, mel_lengths, features = given["in.mel_tgt"], given["in.mel_lens"], {"speakers": given.get("in.speaker")}
    if network.attention is not None:
        features["pitch_frames"] = given["in.pitch_dense"][:, 0] if use_pitch else None
        features["prior"] = given["in.attn_prior"] if case.get("attn_prior", True) else None
    else:
        mels, mel_lengths = torch.zeros(len(tokens), mels.size(1), n_frames), torch.full_like(lengths, n_frames)
        features["durations"] = given["in.dur_tgt"] if kwargs.pop("use_gt_durations", True) else None
        features["pitch"] = given["in.pitch_tgt"] if use_pitch else None
    return network(FastPitchBatch(("",), tokens, lengths, mels, mel_lengths, **features), **kwargs)


def assert_durations_close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=2e-5, rtol=1e-5)


def assert_close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


@of_every_model
def test_training_passes_and_prediction_give_the_published_numbers(goldens: Path, version: str, name: str):
    folder = goldens / version
    network, cases = published(folder, name)
    for case in [case for case in cases if case["kind"] == "forward"]:
        expected, given = load_file(folder / case["file"]), load_file(folder / case["inputs_file"])
        mel, mask = expected["out.mel_out"].transpose(1, 2), expected["out.dec_mask"].transpose(1, 2)
        out = run_forward(network, given, case, mel.size(2))
        assert torch.equal(out.lengths, mask.sum((1, 2)))
        assert_close(out.mel, mel * mask)
        assert_close(out.log_durations, expected["out.log_dur_pred"])
        assert_close(out.pitch, expected["out.pitch_pred"].flatten(1))
        assert_durations_close(out.durations, expected["out.dur_pred"])
        assert (out.energy is None) == ("out.energy_pred" not in expected)
        if out.energy is not None:
            assert_close(out.energy, expected["out.energy_pred"])
            assert_close(out.target_energy, expected["out.energy_tgt"])
        if out.alignment is not None:
            assert_is_aligned_as_published(out, given, expected, case)


def assert_is_aligned_as_published(out: FastPitchOutput, given: dict, expected: dict, case: dict) -> None:
    """Durations, target pitch, attention, path and losses of version 1.1."""
    assert torch.equal(out.target_durations, expected["out.attn_hard_dur"].long())
    if out.target_pitch is not None:
        assert_close(out.target_pitch, expected["out.pitch_tgt"][:, 0])
    frames = mask_from_lengths(given["in.mel_lens"]).unsqueeze(2)
    torch.testing.assert_close(out.alignment.log_probs, expected["out.attn_logprob"][:, 0], atol=2e-5, rtol=0)
    assert_close(out.alignment.attention(given["in.mel_lens"]), expected["out.attn_soft"][:, 0] * frames)
    hard = torch.nn.functional.one_hot(out.alignment.path, out.target_durations.size(1)) * frames
    assert torch.equal(hard, expected["out.attn_hard"][:, 0].long())
    lengths = given["in.text_lens"], given["in.mel_lens"]
    forward_sum = forward_sum_losses(out.alignment.log_probs, *lengths).mean()
    binarization = binarization_sum(out.alignment, lengths[1]) / lengths[1].sum()
    assert forward_sum.item() == pytest.approx(case["attention_ctc_loss_float64"], rel=3e-6)
    assert binarization.item() == pytest.approx(case["attention_binarization_loss_float64"], rel=3e-6)


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


@of_every_model
def test_inference_gives_the_published_numbers_with_every_control(goldens: Path, version: str, name: str):
    folder = goldens / version
    network, cases = published(folder, name)
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


def test_a_single_utterance_is_as_published_with_masked_convolutions_too(goldens: Path):
    folder = goldens / VERSIONS[0]
    network, cases = published(folder, MODELS[0][1], mask_convolutions=True)
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


def _published_loss(out: FastPitchOutput, given: dict[str, Tensor]) -> Tensor:
    """The loss that the golden gradients are of: mel elements that happen to be zero are left out."""
    tokens, valid = mask_from_lengths(given["in.text_lens"]), given["in.mel_tgt"] != 0
    loss = (out.mel - given["in.mel_tgt"])[valid].square().mean()
    loss = loss + (out.log_durations - out.target_durations.float().log1p())[tokens].square().mean()
    loss = loss + (out.pitch - out.target_pitch)[tokens].square().mean()
    if out.energy is not None:
        loss = loss + 0.1 * (out.energy - out.target_energy)[tokens].square().mean()
    if out.alignment is not None:
        lengths = given["in.text_lens"], given["in.mel_lens"]
        loss = loss + forward_sum_losses(out.alignment.log_probs, *lengths).mean()
        loss = loss + 0.5 * binarization_sum(out.alignment, lengths[1]) / lengths[1].sum()
    return loss


@of_every_model
def test_gradients_are_as_published(goldens: Path, version: str, name: str):
    folder = goldens / version
    network, cases = published(folder, name)
    case = next(case for case in cases if case["kind"] == "grads")
    given = load_file(folder / case["inputs_file"])
    loss = _published_loss(run_forward(network, given, {}, given["in.mel_tgt"].size(2)), given)
    assert loss.item() == pytest.approx(case["loss" if "loss" in case else "objective_value"], rel=2e-6, abs=1e-5)
    loss.backward()
    parameters, expected = dict(network.named_parameters()), load_file(folder / case["file"])
    for key in case["params"]:
        golden = next(value for stored, value in expected.items() if stored.removeprefix("grad.") == key)
        torch.testing.assert_close(parameters[key].grad, golden, atol=2e-6, rtol=1e-4)
    for key, norm in case["grad_l2_norms_all"].items():
        assert parameters[key].grad.norm().item() == pytest.approx(norm, rel=1e-4, abs=2e-6), key


@pytest.mark.parametrize(
    ("file", "options"), [one for version in VERSIONS for one in full_size_listings(f"{version}/full_size_keys*.json")]
)
def test_the_full_size_network_has_the_published_names_and_shapes(goldens: Path, file: str, options: set[str]):
    published_keys = read_golden(goldens / file)
    wanted, default = published_keys["config"], ModelConfig(learned_alignment=file.startswith("fastpitch_1_1"))
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


CPU, PATH = torch.device("cpu"), Path("voice.pt")
OLD, NEW = checkpoint_layouts("fastpitch_1_0"), checkpoint_layouts("fastpitch_1_1")
LAYOUTS = {f"fastpitch_1_0/{name}": layout for name, layout in OLD.items()}
LAYOUTS |= {f"fastpitch_1_1/{name}": layout for name, layout in NEW.items()}
FIRST_1_1 = f"fastpitch_1_1/{next(iter(NEW), '')}"


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_published_checkpoint_says_how_its_text_and_audio_are_made(goldens: Path, name: str):
    checkpoint, layout = load_checkpoint(goldens / f"{name}.pt"), LAYOUTS[name]["config"]
    is_new = name.startswith("fastpitch_1_1")
    assert (checkpoint.model, checkpoint.config.learned_alignment) == ("FastPitch", is_new)
    assert checkpoint.config.symbol_type == layout.get("symbol_type", "char")
    assert checkpoint.audio.n_mels == layout["n_mel_channels"]
    if checkpoint.text.input_type == "char":
        assert checkpoint.text.cleaners == (("english_cleaners_v2_1_1",) if is_new else ("english_cleaners",))


def test_a_checkpoint_of_1_1_says_how_its_mels_were_made(goldens: Path):
    payload = torch.load(goldens / f"{FIRST_1_1}.pt", weights_only=True)
    audio = read_published(payload, path=PATH, training=True).audio
    payload["train_setup"] |= {"sampling_rate": 44100, "hop_length": 512, "mel_fmax": 16000.0}
    found = read_published(payload, path=PATH, training=True).audio
    assert found == replace(audio, sampling_rate=44100, hop_length=512, mel_fmax=16000.0)
    del payload["train_setup"]
    assert read_published(payload, path=PATH, training=True).audio == AudioConfig(n_mels=audio.n_mels)


def test_a_checkpoint_of_1_1_says_how_it_reads(goldens: Path):
    payload = torch.load(goldens / f"{FIRST_1_1}.pt", weights_only=True)
    payload["train_setup"] |= {"text_cleaners": ["english_cleaners_v2"], "symbol_set": "english_basic"}
    text = read_published(payload, path=PATH, training=False).text
    assert (text.cleaners, text.symbol_set) == (("english_cleaners_v2_1_1",), "english_basic")
    assert TextFrontEnd(text).clean("Größe") == "groesse"
    payload["config"]["n_symbols"] = 175
    payload["train_setup"]["symbol_set"] = "english_expanded"
    text = read_published(payload, path=PATH, training=False).text
    assert TextFrontEnd(text).n_symbols == 175
    del payload["train_setup"]
    text = read_published(payload, path=PATH, training=False).text
    assert (text.cleaners, text.symbol_set) == (("english_cleaners_1_1",), "english_expanded_1_1")


@pytest.mark.parametrize("name", LAYOUTS)
def test_training_goes_on_from_a_published_checkpoint(goldens: Path, name: str):
    layout, checkpoint = LAYOUTS[name], load_checkpoint(goldens / f"{name}.pt")
    payload = torch.load(goldens / f"{name}.pt", weights_only=True)
    states = checkpoint.training["optimizers"]["fastpitch"]["states"]
    assert (checkpoint.training["epoch"], checkpoint.training["iteration"]) == (layout["epoch"], layout["iteration"])
    without = layout["optimizer"].get("params_without_state", [])
    order = [f"fastpitch.{key}" for key in layout["optimizer_param_order"]]
    assert list(states) == [key for index, key in enumerate(order) if index not in without]
    for index, key in enumerate(order):
        if index not in without:
            assert torch.equal(states[key]["exp_avg_sq"], payload["optimizer"]["state"][index]["exp_avg_sq"])
    networks, config = load_networks(checkpoint, device=CPU)
    kind = "lamb" if "trust_ratio" in layout["optimizer"].get("state_entry_0", {}) else "adam"
    engine = Engine(
        networks,
        FastPitchObjective(TrainingOptions(architecture=config), checkpoint.audio),
        Optimization(lambda iteration, *_: 1e-3),
        RunOptions(optimizer=kind, learning_rate=1e-3),
        ranks=Ranks(),
    )
    engine.load_state(checkpoint.training, where="voice.pt")
    saved = engine.state()["optimizers"]["fastpitch"]["states"]
    assert engine.iteration == layout["iteration"] and list(saved) == list(states)
    for key, state in states.items():
        assert torch.equal(saved[key]["exp_avg"], state["exp_avg"])
        assert float(saved[key]["step"]) == float(state["step"])


DROPOUTS = ("in_fft_dropout", "in_fft_dropatt", "in_fft_dropemb", "out_fft_dropout", "out_fft_dropatt")
WITHOUT_DROPOUT = dict.fromkeys([f"p_{name}" for name in DROPOUTS], 0.0)
WITHOUT_DROPOUT |= {f"p_{name}_predictor_dropout": 0.0 for name in ("dur", "pitch", "energy")}
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
    n_mel_channels=12,
    learned_alignment=True,
    energy_conditioning=True,
    energy_predictor_filter_size=20,
)


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
    "plain": Controls(pace=1.6, speaker=2),
    "shift": Controls(pitch_transform=PitchTransform(shift=60.0), speaker=torch.tensor([2, 0, 1, 2])),
    "custom": Controls(pitch_transform=PitchTransform(custom=pitch_transform_custom), pace=0.8),
}


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize("name", CONTROLS)
def test_an_utterance_alone_is_spoken_as_in_any_batch(name: str, packs: bool, monkeypatch: pytest.MonkeyPatch):
    if not packs:
        monkeypatch.setattr("torch.compiler.is_compiling", lambda: True)  # then batches stay padded
    network, controls, (tokens, lengths) = small(), CONTROLS[name], texts(23, 4, 1, 11)
    together = network.infer(tokens, lengths, controls)
    for item, length in enumerate(lengths.tolist()):
        speaker = controls.speaker if isinstance(controls.speaker, int) else controls.speaker[item : item + 1]
        one = slice(item, item + 1)
        alone = network.infer(tokens[one, :length], lengths[one], replace(controls, speaker=speaker))
        n_frames = int(alone.lengths)
        assert together.lengths[item] == n_frames
        assert_close(together.mel[item, :, :n_frames], alone.mel[0])
        assert not together.mel[item, :, n_frames:].any() and not together.pitch[item, length:].any()
        assert_close(together.pitch[item, :length], alone.pitch[0])
        assert_close(together.energy[item, :length], alone.energy[0])


def recordings(token_lengths: tuple[int, ...], frame_lengths: tuple[int, ...]) -> FastPitchBatch:
    """Random mels, and pitch and texts with noise in their padding."""
    generator = torch.Generator().manual_seed(5)
    tokens, lengths = texts(*token_lengths)
    pitch = torch.randn(len(frame_lengths), max(frame_lengths), generator=generator)
    mels = torch.randn(len(frame_lengths), 12, max(frame_lengths), generator=generator) - 4
    return FastPitchBatch(
        names=tuple(f"u{item}" for item in range(len(frame_lengths))),
        tokens=tokens,
        token_lengths=lengths,
        mels=mels * mask_from_lengths(torch.tensor(frame_lengths)).unsqueeze(1),
        mel_lengths=torch.tensor(frame_lengths),
        pitch_frames=pitch * (pitch > -0.5),
        prior=padded_priors(frame_lengths, token_lengths),
        speakers=torch.arange(len(frame_lengths)) % 3,
    )


def part(batch: FastPitchBatch, item: int) -> FastPitchBatch:
    """One utterance of a batch."""
    n_tokens, n_frames, one = int(batch.token_lengths[item]), int(batch.mel_lengths[item]), slice(item, item + 1)
    return FastPitchBatch(
        names=batch.names[one],
        tokens=batch.tokens[one, :n_tokens],
        token_lengths=batch.token_lengths[one],
        mels=batch.mels[one, :, :n_frames],
        mel_lengths=batch.mel_lengths[one],
        pitch_frames=batch.pitch_frames[one, :n_frames],
        prior=batch.prior[one, :n_frames, :n_tokens],
        speakers=batch.speakers[one],
    )


def test_an_utterance_alone_is_aligned_and_predicted_as_in_any_batch():
    network, batch = small(), recordings((9, 1, 23, 4), (40, 7, 90, 4))
    together = network.teacher_forced(batch)
    assert torch.equal(together.lengths, batch.mel_lengths)
    assert together.mel.shape == batch.mels.shape
    for item in range(4):
        alone = network.teacher_forced(part(batch, item))
        n_tokens, n_frames = int(batch.token_lengths[item]), int(batch.mel_lengths[item])
        assert_close(alone.mel[0], together.mel[item, :, :n_frames])
        for name in ("target_durations", "target_pitch", "target_energy", "energy", "pitch", "log_durations"):
            assert_close(getattr(alone, name)[0], getattr(together, name)[item, :n_tokens])
            assert bool((getattr(together, name)[item, n_tokens:] == 0).all())


def test_packed_rows_give_the_padded_network_and_its_gradients(monkeypatch: pytest.MonkeyPatch):
    network = small(energy_conditioning=False).double()
    tokens, lengths = texts(17, 1, 9, 2)
    durations = torch.randint(0, 4, tokens.shape, generator=torch.Generator().manual_seed(1))
    durations = durations.index_fill(1, torch.tensor([0]), 1) * mask_from_lengths(lengths)
    n_frames = int(durations.sum(1).max())
    mels, speakers = torch.zeros(4, 12, n_frames), torch.tensor([0, 1, 2, 1])
    batch = FastPitchBatch(("",), tokens, lengths, mels, durations.sum(1), durations, speakers=speakers)
    results = []
    for packs in (True, False):
        monkeypatch.setattr("torch.compiler.is_compiling", lambda packs=packs: not packs)
        network.zero_grad()
        out = network(batch)
        (out.mel.square().sum() + out.pitch.square().sum() + out.log_durations.sum()).backward()
        gradients = {key: p.grad.clone() for key, p in network.named_parameters() if p.grad is not None}
        results.append((out.mel.detach(), gradients))
    torch.testing.assert_close(*[mel for mel, _ in results], atol=1e-12, rtol=0)
    torch.testing.assert_close(*[gradients for _, gradients in results], atol=1e-10, rtol=1e-9)


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
