"""Tacotron 2 against the published one: outputs, losses, gradients, checkpoints; padding; and its trainings."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from golden_files import entries, group, read_case, read_golden, series
from safetensors.torch import load_file
from tiny_tacotron2 import (
    INFERENCES,
    TINY,
    inference_case,
    make_wavs,
    one_of,
    published,
    tacotron2_objective,
    tiny_batch,
    tiny_network,
    without_dropout,
)
from torch import Tensor, nn
from toy import toy_engine
from training_setup import parsed, set_up

from common.audio.mel import MelExtractor
from common.audio.wav import load_wav
from common.checkpoints.loading import load_networks
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig, from_plain
from common.data.batch import join_batches
from common.errors import InputError
from common.nn.layers import mask_from_lengths
from common.synthesis.utterances import Controls, MelOutput
from common.text.config import TextConfig
from common.training.optim import OPTIMIZERS, load_state_by_name
from tacotron2.arg_parser import InferenceOptions, TrainingOptions
from tacotron2.data_function import Tacotron2Batch, Tacotron2Dataset
from tacotron2.decoder import PRENET_LAYERS, DecoderStep
from tacotron2.loss_function import sums_of_errors
from tacotron2.model import ModelConfig, Tacotron2, TrainingOutput, durations_from_alignments
from tacotron2.training_setup import model_config

FOLDER = "tacotron2"
CPU = torch.device("cpu")
LAYOUT = entries("tacotron2/checkpoints.json", "layout")
SMALL = [file for file in LAYOUT if "full_shapes" not in file]
PLAIN = next((file for file in SMALL if LAYOUT[file]["optimizer"]["state"]), "")
SCALED = next((file for file in SMALL if LAYOUT[file]["scaler"]), "")
TEACHER_FORCED = {"atol": 3e-5, "rtol": 0}
INFERRED = {"atol": 5e-5, "rtol": 0}
SIZES = [(5, 9), (11, 20), (1, 1), (8, 14)]


@pytest.fixture
def forward_case(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "tacotron2_forward.safetensors")


def golden_batch(case: dict[str, Tensor]) -> Tacotron2Batch:
    given = group(case, "input")
    fields = [given[name] for name in ("text_padded", "input_lengths", "mel_padded", "output_lengths")]
    return Tacotron2Batch(("",) * len(fields[0]), *fields)


def forced(network: Tacotron2, case: dict[str, Tensor], masks: Tensor | None = None):
    """The teacher-forced pass of a golden's batch, without the prenet's dropout unless ``masks`` are given."""
    batch = golden_batch(case)
    n_steps = batch.mels.size(2)
    if masks is None:
        masks = torch.ones(n_steps, PRENET_LAYERS, 1, network.config.prenet_dim)
    return network(batch, prenet_masks=masks[:n_steps])


@torch.no_grad()
@pytest.mark.parametrize(("name", "mask_padding"), [("output", True), ("nomask", False), ("masked_output", True)])
def test_a_teacher_forced_pass_equals_the_published_one(
    folder: Path, forward_case: dict[str, Tensor], name: str, mask_padding: bool
):
    masks = torch.stack(series(forward_case, "prenet_mask.00"), 1) * 2
    out = forced(published(folder, mask_padding=mask_padding), forward_case, masks if name == "masked_output" else None)
    expected = group(forward_case, name)
    torch.testing.assert_close(out.mel, expected["mel_outputs"], **TEACHER_FORCED)
    torch.testing.assert_close(out.mel_postnet, expected["mel_outputs_postnet"], **TEACHER_FORCED)
    torch.testing.assert_close(out.gate_logits, expected["gate_outputs"], **TEACHER_FORCED)
    if "alignments" in expected:
        torch.testing.assert_close(out.alignments, expected["alignments"], **TEACHER_FORCED)


@torch.no_grad()
def test_encoder_and_first_steps_equal_the_published_ones(folder: Path, forward_case: dict[str, Tensor]):
    network = published(folder)
    given, inter = group(forward_case, "input"), group(forward_case, "inter")
    memory, padding = network.encode(given["text_padded"], given["input_lengths"])
    torch.testing.assert_close(memory, inter["encoder_outputs"], **TEACHER_FORCED)
    assert torch.equal(memory[padding], torch.zeros_like(memory[padding]))
    processed = network.decoder.attention_layer.memory_layer(memory)
    torch.testing.assert_close(processed, inter["processed_memory"], **TEACHER_FORCED)
    n_steps = len({key.split(".")[0] for key in inter if key.startswith("step")})
    assert n_steps
    step = DecoderStep(network.decoder, torch.float32)
    # A prenet whose output is 1, so that the masks are the published one's output.
    for weight in (step.prenet_0, step.prenet_1):
        weight.fill_(1 / weight.size(1))
    (n_batch, n_tokens, n_context), config = memory.shape, network.config
    widths = [*[config.attention_rnn_dim] * 2, *[config.decoder_rnn_dim] * 2, n_context, n_tokens, n_tokens]
    states = [torch.zeros(n_batch, width) for width in widths]
    frame, processed = torch.ones(n_batch, config.n_mel_channels), processed.transpose(1, 2)
    names = ["attention_hidden", "attention_cell", "decoder_hidden", "decoder_cell", "attention_context"]
    names += ["attention_weights", "attention_weights_cum"]
    for number in range(n_steps):
        expected = group(inter, f"step{number}")
        masks = torch.stack([torch.ones_like(expected["prenet_out"]), expected["prenet_out"]])
        gate, decoded, *states = step(masks, frame, *states, memory, processed, given["input_lengths"])
        ours = dict(zip(names, states)) | {"decoder_output": decoded, "gate": gate.unsqueeze(1)}
        for name, value in ours.items():
            torch.testing.assert_close(value, expected[name], **TEACHER_FORCED, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("case", INFERENCES)
def test_inference_equals_the_published_one(folder: Path, case: str):
    network, given, masks, expected = inference_case(folder, case)
    out = network.infer(*given, draw_masks=lambda: masks)
    assert out.lengths.tolist() == expected["mel_lengths"].tolist()
    assert out.finished.tolist() == [length < network.config.max_decoder_steps for length in out.lengths.tolist()]
    _assert_equal_where_spoken(out, expected, given[1])


def _assert_equal_where_spoken(out: MelOutput, expected: dict[str, Tensor], token_lengths: Tensor) -> None:
    """The original leaves what follows an utterance's end; here it is zero."""
    n_frames = out.mel.size(2)
    spoken = mask_from_lengths(out.lengths, n_frames)
    mel = expected["mel_outputs_postnet"][:, :, :n_frames] * spoken.unsqueeze(1)
    torch.testing.assert_close(out.mel, mel, **INFERRED)
    alignments = expected["alignments"][:, :n_frames] * spoken.unsqueeze(2)
    torch.testing.assert_close(out.alignments, alignments, **INFERRED)
    assert out.frames.sum(1).tolist() == out.lengths.tolist()


def test_one_utterance_is_the_published_one_also_where_padding_is_hidden(folder: Path):
    _, given, masks, expected = inference_case(folder, "single")
    out = published(folder, mask_convolutions=True).infer(*given, draw_masks=lambda: masks)
    assert out.lengths.tolist() == expected["mel_lengths"].tolist()
    _assert_equal_where_spoken(out, expected, given[1])


def test_durations_from_attention_are_the_published_ones(folder: Path, forward_case: dict[str, Tensor]):
    stored = read_golden(folder / "tacotron2_forward.json", "durations")
    token_lengths, mel_lengths = forward_case["input.input_lengths"], forward_case["input.output_lengths"]
    durations = durations_from_alignments(forward_case["output.alignments"], token_lengths, mel_lengths)
    assert durations.dtype == torch.int64
    assert [row[:n].tolist() for row, n in zip(durations, token_lengths)] == stored
    assert durations.sum(1).tolist() == mel_lengths.tolist()


def test_the_full_size_model_has_the_published_keys_and_shapes(folder: Path):
    about = read_golden(folder / "full_size_state_dict.json")
    with torch.device("meta"):
        network = Tacotron2(from_plain(ModelConfig, about["config"], where="golden"))
    ours = {key: list(value.shape) for key, value in network.state_dict().items()}
    assert ours == {key: value["shape"] for key, value in about["state_dict"].items()}
    assert sum(parameter.numel() for parameter in network.parameters()) == about["n_params"]
    defaults = ModelConfig()
    assert all(getattr(defaults, key) == value for key, value in about["config"].items() if key != "mask_padding")


@torch.no_grad()
def test_a_teacher_forced_utterance_is_the_same_in_any_batch():
    network, batch = tiny_network(), tiny_batch(SIZES)
    together = network.teacher_forced(batch)
    for row, (n_tokens, n_frames) in enumerate(SIZES):
        alone = network.teacher_forced(one_of(batch, row))
        torch.testing.assert_close(together.mel[row, :, :n_frames], alone.mel[0], atol=1e-5, rtol=0)
        torch.testing.assert_close(
            together.alignments[row, :n_frames, :n_tokens], alone.alignments[0], atol=1e-5, rtol=0
        )
        assert not together.mel[row, :, n_frames:].any()
        assert not together.alignments[row, n_frames:].any()
        assert together.frames[row].sum() == n_frames


@pytest.mark.parametrize(("bias", "n_frames", "finished"), [(-50.0, 70, False), (50.0, 1, True)])
def test_an_utterance_has_at_least_one_frame_and_is_not_finished_at_the_last_step(
    bias: float, n_frames: int, finished: bool
):
    network, batch = tiny_network(), tiny_batch([(6, 1), (9, 1)])
    with torch.no_grad():
        network.decoder.gate_layer.linear_layer.bias.fill_(bias)
    out = network.infer(batch.tokens, batch.token_lengths, Controls(options=InferenceOptions(max_decoder_steps=70)))
    assert (out.finished.tolist(), out.lengths.tolist()) == ([finished] * 2, [n_frames] * 2)
    assert out.mel.shape == (2, TINY.n_mel_channels, n_frames) and out.frames.sum(1).tolist() == [n_frames] * 2


def golden_output(case: dict[str, Tensor], name: str) -> TrainingOutput:
    """Stored outputs of a golden; the alignments have no part in the loss."""
    out = group(case, name)
    return TrainingOutput(out["mel_outputs"], out["mel_outputs_postnet"], out["gate_outputs"], torch.empty(0))


def published_means(out: TrainingOutput, batch: Tacotron2Batch) -> dict[str, float]:
    """Plain means over everything, padding included, by the objective for the original's training."""
    objective = tacotron2_objective(mask_padding=False)
    sums = sums_of_errors(out, batch, mask_padding=False)
    return {name: float(total / objective.counts("tacotron2", batch)[name]) for name, total in sums.items()}


@pytest.mark.parametrize(
    ("stored", "outputs"),
    [("mask_padding_true", "output"), ("mask_padding_false", "nomask"), ("prenet_masks", "masked_output")],
)
def test_losses_equal_the_published_ones(folder: Path, forward_case: dict[str, Tensor], stored: str, outputs: str):
    expected = read_golden(folder / "tacotron2_forward.json", "loss", stored)
    means = published_means(golden_output(forward_case, outputs), golden_batch(forward_case))
    assert means["mel_loss"] == pytest.approx(expected["mel"], rel=1e-5)
    assert means["mel_postnet_loss"] == pytest.approx(expected["mel_postnet"], rel=1e-5)
    assert means["gate_loss"] == pytest.approx(expected["gate"], rel=1e-5)
    assert sum(means.values()) == pytest.approx(expected["total"], rel=1e-5)


def test_masked_losses_are_the_published_sums_over_valid_elements(folder: Path, forward_case: dict[str, Tensor]):
    expected = read_golden(folder / "tacotron2_forward.json", "loss", "mask_padding_true")
    batch = golden_batch(forward_case)
    objective = tacotron2_objective()
    sums = sums_of_errors(golden_output(forward_case, "output"), batch, mask_padding=True)
    counts = objective.counts("tacotron2", batch)
    everything = batch.mels.size(0) * batch.mels.size(2)
    share = everything / int(batch.mel_lengths.sum())
    for name, stored in (("mel_loss", "mel"), ("mel_postnet_loss", "mel_postnet"), ("gate_loss", "gate")):
        assert float(sums[name] / counts[name]) == pytest.approx(expected[stored] * share, rel=1e-5)


def test_gradient_norms_and_batch_statistics_equal_the_published_ones(folder: Path, forward_case: dict[str, Tensor]):
    expected = read_golden(folder / "tacotron2_forward.json", "loss", "train_no_dropout")
    network, batch = without_dropout(published(folder, mask_padding=False)).train(), golden_batch(forward_case)
    objective = tacotron2_objective(mask_padding=False)
    sums = objective.numerators("tacotron2", {"tacotron2": network}, batch)
    counts = objective.counts("tacotron2", batch)
    loss = sum(total / counts[name] for name, total in sums.items())
    loss.backward()
    assert float(loss.detach()) == pytest.approx(expected["total"], rel=1e-5)
    norms = {name: float(parameter.grad.norm()) for name, parameter in network.named_parameters()}
    assert set(norms) == set(expected["grad_norms"])
    for name, norm in expected["grad_norms"].items():
        assert norms[name] == pytest.approx(norm, rel=1e-3, abs=2e-6), name
    state = network.state_dict()
    for name, value in group(forward_case, "train.bn_after").items():
        torch.testing.assert_close(state[name], value, atol=1e-5, rtol=1e-5)


def test_masked_training_gives_gradients_that_padding_has_no_part_in():
    network = without_dropout(tiny_network()).train()
    _freeze_batch_norm(network)
    objective, batch = tacotron2_objective(), tiny_batch(SIZES)
    longer = replace(
        batch, tokens=torch.nn.functional.pad(batch.tokens, (0, 3)), mels=torch.nn.functional.pad(batch.mels, (0, 5))
    )
    gradients = []
    for given in (batch, longer):
        network.zero_grad()
        sum(objective.numerators("tacotron2", {"tacotron2": network}, given).values()).backward()
        gradients.append({name: parameter.grad.clone() for name, parameter in network.named_parameters()})
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(
            gradients[1][name], gradient, atol=1e-3, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}"
        )


def _freeze_batch_norm(network: Tacotron2) -> None:
    """Let batch norm use its running statistics, the one thing in which utterances of a micro-batch touch."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.eval()


@pytest.mark.parametrize("name", SMALL)
def test_a_published_checkpoint_loads_into_the_model_it_describes(folder: Path, name: str):
    checkpoint = load_checkpoint(folder / "checkpoints" / name)
    assert checkpoint.model == "Tacotron2"
    assert (checkpoint.text.symbol_set, checkpoint.text.cleaners) == ("english_basic", ("english_cleaners_tacotron2",))
    assert checkpoint.audio == AudioConfig(n_mels=LAYOUT[name]["config"]["n_mel_channels"])
    networks, config = load_networks(checkpoint, device=CPU)
    assert config.mask_convolutions  # an utterance does not depend on its batch, whoever trained the voice
    assert set(networks) == {"tacotron2"}


def test_optimizer_state_and_loss_scale_go_where_they_belong(folder: Path):
    path = folder / "checkpoints" / PLAIN
    checkpoint = load_checkpoint(path)
    networks, _ = load_networks(checkpoint, device=CPU)
    named = {f"tacotron2.{key}": parameter for key, parameter in networks["tacotron2"].named_parameters()}
    optimizer = OPTIMIZERS["adam"](named.values(), 1e-3, weight_decay=1e-6)
    saved = checkpoint.training["optimizers"]["tacotron2"]
    load_state_by_name(optimizer, saved, named, where=str(path))
    stored = torch.load(path, weights_only=True)["optimizer"]["state"]
    assert len(stored) == len(named)
    for number, parameter in enumerate(named.values()):
        assert torch.equal(optimizer.state[parameter]["exp_avg"], stored[number]["exp_avg"])
    assert optimizer.param_groups[0]["eps"] == 1e-8
    assert checkpoint.training["epoch"] == LAYOUT[PLAIN]["epoch"] + 1  # the original counts from 0

    scaled, stored = load_checkpoint(folder / "checkpoints" / SCALED).training["scaler"], LAYOUT[SCALED]["scaler"]
    finite_since = {"tacotron2": stored["_growth_tracker"]}
    assert scaled == {"scales": {"tacotron2": stored["scale"]}, "finite_since": finite_since}


def test_guided_attention_draws_attention_to_the_diagonal():
    network, batch = without_dropout(tiny_network()).train(), tiny_batch(SIZES)
    objective = tacotron2_objective(guided_attention_weight=50.0)
    engine = toy_engine({"tacotron2": network}, objective=objective, optimizer="adam", learning_rate=0.01)
    before = engine.evaluate([batch])
    for _ in range(40):
        engine.step([batch], epoch=1)
    after = engine.evaluate([batch])
    assert after["guided_attention_loss"] < 0.7 * before["guided_attention_loss"]
    assert after["attention_diagonality"] > before["attention_diagonality"] + 0.1


TEXT = TextConfig(cleaners=("english_cleaners",))


def read(folder: Path, *lines: str, mels: bool = False, audio: AudioConfig | None = None) -> Tacotron2Dataset:
    path = folder / "list.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    options = TrainingOptions(dataset_path=folder, load_mel_from_disk=mels)
    return Tacotron2Dataset(options, path, audio=audio or AudioConfig(), text=TEXT)


@pytest.fixture
def wavs(tmp_path: Path) -> Path:
    return make_wavs(tmp_path)


def test_a_batch_holds_what_the_published_collation_gives(goldens: Path):
    about, tensors = read_case(goldens / "tacotron2", "tacotron2_collate")
    items = [
        Tacotron2Batch.of_one(f"u{index}", tensors[f"item.{index}.text"], tensors[f"item.{index}.mel"])
        for index in range(about["items"])
    ]
    batch, expected = join_batches(items), group(tensors, "output")
    order = torch.argsort(batch.token_lengths, descending=True)  # the original sorts by the text's length
    assert torch.equal(batch.tokens[order], expected["text_padded"])
    assert torch.equal(batch.token_lengths[order], expected["input_lengths"])
    assert torch.equal(batch.mels[order], expected["mel_padded"])
    assert torch.equal(batch.mel_lengths[order], expected["output_lengths"])
    assert torch.equal(batch.gate_targets[order], expected["gate_padded"])
    assert int(batch.n_frames) == int(expected["output_lengths"].sum())


def test_mels_of_recordings_are_computed_as_the_audio_says(wavs: Path):
    audio = AudioConfig(hop_length=200, win_length=800)
    dataset = read(wavs, "wavs/c1.wav|Hello you.", audio=audio)
    wave = load_wav(wavs / "wavs/c1.wav", sampling_rate=22050)
    item = dataset[0]
    torch.testing.assert_close(item.mels, MelExtractor(audio)(wave[None]))
    assert item.names[0] == f"wavs/c1.wav ({wavs / 'list.txt'}:1)"
    assert item.tokens.size(1) == len("hello you.")


@pytest.mark.parametrize(
    ("line", "from_disk", "message"),
    [
        ("wavs/none.wav|Hello.", False, r"none\.wav: no such file \(.*list\.txt:1\)"),
        ('wavs/c0.wav|Hello "you".', False, r"not in symbol set english_basic"),
        ("wavs/short.wav|Hello.", False, r"short\.wav: 300 samples, a mel needs at least 513 .*list\.txt:1"),
        ("mels/a.pt|Hello.", False, r"list\.txt: begins with mels/a\.pt; --load-mel-from-disk is only for"),
        ("wavs/c0.wav|Hello.", True, r"list\.txt: begins with wavs/c0\.wav; --load-mel"),
        ("mels/none.pt|Hello.", True, r"none\.pt: no such file .*run extract_mels\.py first"),
        ("wavs/c0.wav", False, r"list\.txt:1: 1 columns, expected wav\|text"),
        ("wavs/c0.wav|", False, r"list\.txt:1: the text column is empty"),
    ],
)
def test_bad_lists_and_files_are_refused_before_training(wavs: Path, line: str, from_disk: bool, message: str):
    import soundfile

    soundfile.write(wavs / "wavs" / "short.wav", torch.zeros(300).numpy(), 22050)
    with pytest.raises(InputError, match=message):
        read(wavs, line, mels=from_disk)


def parse(*extra: str):
    """Arguments and what training takes of them."""
    lists = ["--training-files", "a", "--validation-files", "b"]
    words = ["-m", "Tacotron2", "-o", "out", *lists, *extra]
    return parsed(words), set_up(*words)


def test_options_default_to_the_published_model_and_recipe():
    args, setup = parse()
    assert model_config(setup.options, AudioConfig(), setup.text, base=None) == ModelConfig()
    assert (args.optimizer, args.learning_rate, args.weight_decay) == ("adam", 1e-3, 1e-6)
    assert (args.grad_clip_thresh, args.epochs, args.epochs_per_checkpoint, args.batch_size) == (1.0, 1501, 50, 48)
    optimization = setup.optimization
    assert (optimization.betas, optimization.eps) == ((0.9, 0.999), 1e-8)
    assert setup.audio == AudioConfig()
    for extra, rate in (((), 1e-4), (("--amp",), 3e-4), (("--amp", "--anneal-factor", "0.1"), 1e-4)):
        assert parse(*extra)[1].optimization.schedule(1, 501) == pytest.approx(rate)
