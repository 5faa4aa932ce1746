"""Length buckets: batches padded up to a few shapes, in training and inference, with the results of unpadded ones."""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from test_combinations import AUDIO, new_networks, save_all
from test_fastpitch_1_1 import WITHOUT_DROPOUT, recordings, small
from tiny_models import MODELS, TinyModel, logged, without_dropout, without_samples
from torch import Tensor, nn

import inference
from common.audio.denoiser import BIAS_FRAMES
from common.audio.wav import load_wav
from common.checkpoints.loading import load_for_inference, open_checkpoint
from common.data.batch import Batch
from common.data.buckets import choose_shapes, shape_of
from common.data.sampler import GlobalBatchSampler
from common.distributed import Ranks
from common.errors import OptionError
from common.precision import Precision
from common.serving.arguments import parse_args
from common.serving.options import Limits
from common.synthesis.acceleration import PaddedShapes
from common.synthesis.loading import make_voice
from common.synthesis.options import AccelerationOptions, SpeakingOptions, VoiceOptions
from common.synthesis.utterances import Controls, SynthesisResult
from common.training.engine import Engine
from common.training.optim import Optimization
from common.training.options import RunOptions
from common.training.start import lay_out_batches
from fastpitch.loss_function import FastPitchObjective
from scripts.benchmarks.random_models import LETTERS_A_SECOND, draw_lengths

VARYING = [model for model in MODELS if model.name in ("FastPitch", "Tacotron2", "Jasper")]
of_varying_models = pytest.mark.parametrize("model", VARYING, ids=lambda model: model.name)


@dataclass
class Seen:
    """What a run trained on, and learned from its first batch."""

    shapes: list[tuple] = field(default_factory=list)  # of all tensors of each micro-batch
    gradients: dict[str, Tensor] = field(default_factory=dict)


def gradients(engine: Engine, batch: Batch) -> dict[str, Tensor]:
    """Those of the sum of all terms of a batch."""
    (phase,) = engine.objective.phases
    sums = engine.objective.numerators(phase.name, engine.networks, batch)
    sum(one for one in sums.values() if one.requires_grad).backward()
    found = {}
    for network in engine.networks.values():
        for name, parameter in network.named_parameters():
            if parameter.grad is not None:
                found[name], parameter.grad = parameter.grad, None
    return found


@contextlib.contextmanager
def watched() -> Iterator[Seen]:
    """What training sees in the with block."""
    seen, step = Seen(), Engine.step

    def watching(engine: Engine, micro_batches, **given):
        seen.gradients = seen.gradients or gradients(engine, micro_batches[0])
        for batch in micro_batches:
            seen.shapes.append(tuple((k, v.shape) for k, v in vars(batch).items() if isinstance(v, Tensor)))
        return step(engine, micro_batches, **given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "step", watching)
        yield seen


def trained(model: TinyModel, corpora: Path, output: Path, *words: str) -> Seen:
    with without_dropout(model), without_samples(), watched() as seen:
        assert model.train(corpora, output, "--epochs", "2", *model.without_dropout.split(), *words) == 0
    return seen


@of_varying_models
def test_training_with_buckets_is_training_without_them_in_few_shapes(model: TinyModel, corpora: Path, tmp_path: Path):
    plain = trained(model, corpora, tmp_path / "plain")
    seen = trained(model, corpora, tmp_path / "buckets", "--length-buckets", "2")
    assert len(set(seen.shapes)) <= 2 < len(set(plain.shapes))
    assert set(seen.shapes).isdisjoint(plain.shapes), "every batch is padded"
    assert set(seen.gradients) == set(plain.gradients)
    largest = max(float(one.abs().max()) for one in plain.gradients.values())
    for name, expected in plain.gradients.items():
        difference = float((seen.gradients[name] - expected).abs().max())
        assert difference < 1e-5 * max(float(expected.abs().max()), 0.1 * largest), name
    for name in (*(f"train_{one}" for one in model.logged), *(f"val_{one}" for one in model.validated)):
        expected = logged(tmp_path / "plain", name)
        assert logged(tmp_path / "buckets", name) == pytest.approx(expected, rel=1e-4, abs=1e-5), name
    assert "batches are padded to 2 lengths (" in (tmp_path / "buckets/stdout.txt").read_text()


def test_training_with_pieces_is_training_without_them(corpora: Path, tmp_path: Path):
    model = next(model for model in VARYING if model.name == "FastPitch")
    plain = trained(model, corpora, tmp_path / "plain", "--batch-size", "4")
    seen = trained(model, corpora, tmp_path / "pieces", "--batch-size", "4", "--length-pieces", "2")
    assert len(seen.shapes) == 2 * len(plain.shapes)
    for name in (*(f"train_{one}" for one in model.logged), *(f"val_{one}" for one in model.validated)):
        expected = logged(tmp_path / "plain", name)
        assert logged(tmp_path / "pieces", name) == pytest.approx(expected, rel=1e-4, abs=1e-5), name


def test_a_learned_alignment_is_the_same_with_padding():
    network, batch = small(**WITHOUT_DROPOUT), recordings((5, 9, 7), (12, 9, 30))
    assert batch.sizes == {"frames": 30, "tokens": 9}
    padded, objective = batch.padded({"frames": 40, "tokens": 16}), FastPitchObjective(energy=True, alignment=True)
    assert padded.prior.shape == (3, 40, 16)
    found = []
    for one in (batch, padded):
        terms = objective.evaluate({"fastpitch": network}, one)
        sum(term.total for term in terms.values()).backward()
        gradients = {name: p.grad for name, p in network.named_parameters() if p.grad is not None}
        found.append(({name: (one.total.item(), one.count.item()) for name, one in terms.items()}, gradients))
        network.zero_grad()
    (plain, expected), (terms, gradients) = found
    assert len(plain) == 10
    for name, values in plain.items():
        assert terms[name] == pytest.approx(values, rel=1e-5, abs=1e-6), name
    assert any(name.startswith("attention.") for name in expected)
    for name, gradient in expected.items():
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-4, atol=1e-4)


def test_shapes_hold_all_utterances_and_grow():
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(20, 180, (500,), generator=generator)
    frames = (tokens * (4 + 3 * torch.rand(500, generator=generator))).long()
    training = {"frames": frames.tolist(), "tokens": tokens.tolist()}
    validation = {"frames": [3000, 10], "tokens": [40, 400]}
    shapes = choose_shapes([training, validation], 8)
    assert len(shapes) == 8
    for smaller, larger in itertools.pairwise(shapes):
        assert all(smaller[axis] <= larger[axis] for axis in training) and smaller != larger
    assert all(size % 8 == 0 for shape in shapes for size in shape.values())
    chosen = [shape_of({"frames": f, "tokens": t}, shapes) for f, t in zip(*training.values())]
    assert all(shape in shapes and shape["frames"] >= f for shape, f in zip(chosen, training["frames"]))
    assert min(chosen.count(shape) for shape in shapes) > 30, "quantiles"
    assert shape_of({"frames": 3000, "tokens": 400}, shapes) == shapes[-1]
    assert choose_shapes([{"frames": [7, 7], "tokens": [1, 2]}], 3) == [{"frames": 8, "tokens": 8}]


def test_what_a_draw_makes_longer_than_all_shapes_is_padded_to_multiples():
    shapes = [{"frames": 100, "tokens": 40}, {"frames": 200, "tokens": 80}]
    assert shape_of({"frames": 90, "tokens": 41}, shapes) == shapes[1]
    assert shape_of({"frames": 90, "tokens": 81}, shapes) == {"frames": 200, "tokens": 128}


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("Tacotron2", "--no-mask-padding", "changes what is learned with --no-mask-padding"),
        ("Tacotron2", "--no-mask-convolutions", "changes what is learned with --no-mask-convolutions"),
        ("Jasper", "--override-config jasper.encoder.use_conv_masks=false", "learned with use_conv_masks: false"),
    ],
)
def test_buckets_that_would_do_nothing_or_harm_are_refused(
    name: str, words: str, message: str, corpora: Path, tmp_path: Path
):
    model = next(model for model in MODELS if model.name == name)
    with pytest.raises(OptionError, match=message):
        model.train(corpora, tmp_path, "--length-buckets", "4", *words.split())


@pytest.mark.parametrize(
    ("given", "for_gpu", "norm", "expected"),
    [
        ({"batch_size": 64}, True, False, (8, 4)),
        ({"batch_size": 64, "gradient_accumulation_steps": 2}, True, False, (8, 2)),
        ({"batch_size": 64, "gradient_accumulation_steps": 4}, True, False, (8, 1)),
        ({"batch_size": 16}, True, False, (8, 2)),
        ({"batch_size": 27}, True, False, (8, 3)),
        ({"batch_size": 64}, True, True, (8, 1)),
        ({"batch_size": 64, "compile": True}, True, False, (0, 4)),
        ({"batch_size": 64, "length_buckets": 0, "length_pieces": 1}, True, False, (0, 1)),
        ({"batch_size": 64}, False, False, (0, 1)),
    ],
)
def test_a_gpu_gets_few_shapes_with_little_padding(given: dict, for_gpu: bool, norm: bool, expected: tuple[int, int]):
    network = nn.BatchNorm1d(1) if norm else nn.Linear(1, 1)
    run = lay_out_batches(RunOptions(**given), [network], for_gpu=for_gpu, sees_padding=False)
    assert (run.length_buckets, run.length_pieces) == expected


@pytest.mark.parametrize(
    ("n_pieces", "network", "message"),
    [(2, nn.BatchNorm1d(1), "learned with batch norm"), (3, nn.Linear(1, 1), "expected a divisor of --batch-size, 64")],
)
def test_pieces_that_change_what_is_learned_are_refused(n_pieces: int, network: nn.Module, message: str):
    with pytest.raises(OptionError, match=message):
        run = RunOptions(batch_size=64, length_pieces=n_pieces)
        lay_out_batches(run, [network], for_gpu=True, sees_padding=False)


def valid_share(*, model: str = "FastPitch", size: int = 64, **given: int) -> float:
    """How much of an epoch of LJSpeech-like utterances is no padding; batches are a GPU's but for ``given`` options."""
    frames = [n_samples // 256 for n_samples in draw_lengths(model, 12_500, 22050)]
    sizes = {"frames": frames, "tokens": [max(round(LETTERS_A_SECOND * n * 256 / 22050), 1) for n in frames]}
    network = nn.BatchNorm1d(1) if model == "Jasper" else nn.Linear(1, 1)
    run = RunOptions(batch_size=size, **given)
    run = lay_out_batches(run, [network], for_gpu=True, sees_padding=False)
    shapes = choose_shapes([sizes], run.length_buckets) if run.length_buckets else []
    count = run.gradient_accumulation_steps * run.length_pieces
    cut = {"batch_size": size // run.length_pieces, "accumulation": count, "seed": 1, "ranks": Ranks()}
    sampler = GlobalBatchSampler(frames, **cut, sorted_updates=run.sorted_updates)
    sampler.set_position(epoch=1)
    valid = padded = 0
    for batch in sampler:
        own = {axis: max(values[draw.index] for draw in batch) for axis, values in sizes.items()}
        valid += sum(frames[draw.index] for draw in batch)
        padded += len(batch) * (shape_of(own, shapes) if shapes else own)["frames"]
    return valid / padded


def test_most_of_a_batch_is_valid_where_it_is_cut_by_length():
    assert valid_share(length_buckets=0, length_pieces=1) < 0.6
    assert valid_share() > 0.8
    assert valid_share(model="Jasper", size=32, gradient_accumulation_steps=2, sorted_updates=4) > 0.87


@pytest.fixture
def compiler() -> Iterator[Any]:
    """The compiler's settings as they usually are, and afterwards as they were."""
    from torch._dynamo import config

    with config.patch(recompile_limit=8, accumulated_recompile_limit=256):
        yield config


def test_networks_are_compiled_for_the_buckets_shapes_alone(compiler: Any, monkeypatch: pytest.MonkeyPatch):
    given: list[dict] = []
    monkeypatch.setattr(nn.Module, "compile", lambda self, **options: given.append(options))

    def build(*, length_buckets: int = 0, same_shapes: bool = False) -> None:
        run = RunOptions(compile=True, length_buckets=length_buckets)
        optimization, objective = Optimization(lambda iteration, *_: 0.1), SimpleNamespace(phases=())
        networks = {"network": nn.Linear(1, 1)}
        Engine(networks, objective, optimization, run, ranks=Ranks(), same_shapes=same_shapes)

    build()
    build(same_shapes=True)
    assert compiler.recompile_limit == 8
    build(length_buckets=16)
    assert [options["dynamic"] for options in given] == [True, None, False]
    assert compiler.recompile_limit >= 32


TEXTS = ("Go on.", "A longer one, by far.", "Hm?", "<speak>So <prosody rate='50%'>slow</prosody> is this.</speak>")


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint of each tiny generator and vocoder."""
    return save_all(tmp_path_factory.mktemp("checkpoints"), new_networks())


class Shapes:
    """A network that keeps the shapes of what its ``infer`` is given."""

    def __init__(self, network: Any, loaded: Any) -> None:
        self.network, self.seen = network, []
        self.infer_of = network.infer

    def infer(self, *given: Any, **settings: Any) -> Any:
        if given[0].size(-1) != BIAS_FRAMES:  # of the denoiser, once
            assert given[1] is not None, "one form of a shape: with lengths"
            self.seen.append(tuple(given[0].shape))
        return self.infer_of(*given, **settings)


@pytest.mark.parametrize(("generator", "vocoder"), [("FastPitch", "HiFi-GAN"), ("Tacotron2", "WaveGlow")])
def test_what_is_spoken_in_padded_shapes_is_the_same(
    generator: str, vocoder: str, paths: dict[str, Path], monkeypatch: pytest.MonkeyPatch
):
    def speak(n_buckets: int, n_texts: int) -> tuple[list[SynthesisResult], Shapes | None, Shapes | None]:
        made: list[Shapes] = []

        def accelerate(network: Any, loaded: Any, options: VoiceOptions) -> Shapes:
            made.append(Shapes(network, loaded))
            return made[-1]

        options = VoiceOptions(
            SpeakingOptions(denoising_strength=0.1),
            acceleration=AccelerationOptions(length_buckets=n_buckets),
            batch_size=8,
        )
        opened = [open_checkpoint(paths[name], ema=True) for name in (generator, vocoder)]
        with monkeypatch.context() as patched:
            if n_buckets:
                patched.setattr("common.synthesis.loading.accelerated", accelerate)
            voice = make_voice(*opened, options, precision=Precision())
        items = [item for text in TEXTS[:n_texts] for item in voice.plan(text)]
        return [*voice.synthesizer.synthesize(items)], *(made or (None, None))

    for n_texts in (3, 4, 1):
        expected, *_ = speak(0, n_texts)
        results, of_text, of_mel = speak(64, n_texts)
        assert len(results) == len(expected) >= n_texts
        (read,) = of_text.seen
        assert read[0] in (1, 4, 8) and read[1] % 8 == 0
        assert all(mel[0] == 1 and mel[2] % 32 == 0 for mel in of_mel.seen)
        for ours, theirs in zip(results, expected):
            torch.testing.assert_close(ours.mel, theirs.mel, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(ours.wave, theirs.wave, rtol=1e-4, atol=1e-5)
            assert torch.equal(ours.frames_of_symbols(), theirs.frames_of_symbols())


def test_a_generator_makes_mels_of_few_lengths(paths: dict[str, Path]):
    network, _ = load_for_inference(open_checkpoint(paths["FastPitch"], role="generator"), device=torch.device("cpu"))
    tokens = torch.randint(1, 100, (2, 24))
    out = network.infer(tokens, torch.tensor([24, 11]), Controls(frame_step=32))
    plain = network.infer(tokens, torch.tensor([24, 11]))
    assert out.mel.size(2) % 32 == 0 and out.mel.size(2) > plain.mel.size(2)
    assert torch.equal(out.lengths, plain.lengths)
    torch.testing.assert_close(out.mel[:, :, : plain.mel.size(2)], plain.mel)
    assert not out.mel[:, :, plain.mel.size(2) :].any()


def test_shapes_of_inference_are_evenly_spaced_and_batches_grow_by_doubling():
    shapes = PaddedShapes(8, 12)
    assert PaddedShapes.of(VoiceOptions()) is None
    assert [shapes.symbols(n) for n in (1, 64, 65, 512, 513)] == [64, 64, 128, 512, 576]
    assert shapes.frame_step == 256
    assert [shapes.rows(n) for n in (1, 2, 3, 5, 8, 9, 12, 20)] == [1, 2, 4, 8, 8, 12, 12, 20]


def test_options_of_inference_pad_and_compile_for_the_buckets(
    paths: dict[str, Path], compiler: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: compiled.append(dynamic) or function)
    models = ["--fastpitch", str(paths["FastPitch"]), "--hifigan", str(paths["HiFi-GAN"]), "--quiet", "--compile"]
    waves = []
    for name, buckets in (("plain", "0"), ("padded", "16")):
        words = ["--text", TEXTS[1], "-o", str(tmp_path / f"{name}.wav"), "--length-buckets", buckets]
        assert inference.main([*models, *words]) == 0
        waves.append(load_wav(tmp_path / f"{name}.wav", sampling_rate=AUDIO.sampling_rate))
    torch.testing.assert_close(*waves, rtol=0, atol=2 / 32768)
    assert compiled == [True, True, False, False] and compiler.recompile_limit > 8
    args = parse_args(["--fastpitch", "v.pt", "--length-buckets", "4"])
    assert (args.length_buckets, args.batch_size) == (4, Limits().batch_size)
