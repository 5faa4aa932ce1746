"""Jasper's YAML files, manifests, recordings, published checkpoints, and trainings by train.py."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
import yaml
from golden_files import first_matching, group, read_golden
from safetensors.torch import load_file
from sung_words import RATE, make_sung_corpus, training_options
from tiny_models import logged

import train
from common.audio.wav import save_wav
from common.checkpoints.loading import load_networks
from common.checkpoints.reading import load_checkpoint
from common.errors import InputError, OptionError
from common.training.optim import Novograd, load_state_by_name
from jasper.arg_parser import TrainingOptions
from jasper.config import LABELS
from jasper.data_function import JasperDataset
from jasper.manifest import Entry, read_entries, select_entries
from jasper.model import Jasper
from jasper.waveform import change_speed, load_recording
from jasper.yaml_config import CONFIGS, DatasetSettings, SpeedPerturbation, load_config
from scripts.checkpoint_tools import convert
from scripts.corpora import preprocess_librispeech

SPECA = CONFIGS / "jasper10x5dr_speca.yaml"


@pytest.fixture(scope="module")
def facts(goldens: Path) -> dict:
    return json.loads((goldens / "jasper" / "config_facts.json").read_text())


def test_all_published_files_have_the_published_inputs(facts: dict):
    published = facts["validated_and_filled_input_sections"]
    assert published
    for name, inputs in published.items():
        filled = asdict(load_config(CONFIGS / f"{name}.yaml"))
        for subset, parts in inputs.items():
            for part, values in parts.items():
                own = filled[f"input_{subset}"][part]
                assert {key: "inf" if value == float("inf") else value for key, value in own.items()} == values


def test_all_published_files_have_the_published_network(facts: dict):
    blocks = load_config(SPECA).model.blocks
    for index, block in enumerate(blocks):
        for key in ("filters", "repeat", "kernel_size", "stride", "dilation", "dropout", "residual", "residual_dense"):
            value = facts["common_to_all"].get(f"jasper.encoder.blocks[{index}].{key}", False)
            assert getattr(block, key) == (value[0] if isinstance(value, list) else value)
    assert f"jasper.encoder.blocks[{len(blocks)}].filters" not in facts["common_to_all"]
    for name, own in facts["specific"].items():
        model = load_config(CONFIGS / f"{name}.yaml").model
        assert (model.blocks, model.labels, model.activation) == (blocks, LABELS, "relu")
        assert model.use_conv_masks == own["jasper.encoder.use_conv_masks"]
        assert model.init == model.decoder_init == "xavier_uniform"


def test_other_values_take_the_place_of_the_files():
    settings = load_config(
        SPECA,
        overrides=[
            "input_train.audio_dataset.max_duration=1e1",
            "jasper.encoder.blocks.1.dropout=0",
            "input_train.audio_dataset.speed_perturbation.p=1",
            "input_train.filterbank_features.spec_augment=null",
            *(f"input_{subset}.filterbank_features.preemph=null" for subset in ("train", "val")),
        ],
    )
    before = load_config(SPECA)
    assert settings.input_train.audio_dataset == replace(
        before.input_train.audio_dataset, max_duration=10.0, speed_perturbation=SpeedPerturbation(p=1)
    )
    assert settings.input_val.audio_dataset == before.input_val.audio_dataset
    assert settings.input_train.filterbank_features.spec_augment is None and settings.model.features.preemph is None
    assert [block.dropout for block in settings.model.blocks[:3]] == [0.2, 0, 0.2]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("input_train.audio_dataset.sped=1", "input_train.audio_dataset.sped: unknown key"),
        ("jasper.encoder.blocks.0.filters=x", r"jasper.encoder: blocks.0.filters: .* a valid integer, got 'x'"),
        ("jasper.encoder.activation=gelu", "jasper.encoder: activation 'gelu': expected one of hardtanh, relu, selu"),
        ("input_val.filterbank_features.n_filt=80", "input_val.filterbank_features.n_filt 80: expected 64"),
    ],
)
def test_a_wrong_key_or_value_is_one_line_that_names_file_and_key(override: str, message: str):
    with pytest.raises(OptionError, match=message) as caught:
        load_config(SPECA, overrides=[override])
    assert str(caught.value).startswith(f"{SPECA}: ") and "\n" not in str(caught.value)


LIBRISPEECH_RATE = 16000


def add_wav(path: Path, *, seconds: float = 0.5, rate: int = LIBRISPEECH_RATE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = 0.1 * torch.randn(round(seconds * rate), generator=torch.Generator().manual_seed(0))
    save_wav(path, noise, sampling_rate=rate, durable=False)
    return path


def write_manifest(path: Path, *items: object) -> Path:
    path.write_text(json.dumps(list(items)))
    return path


def test_a_manifest_as_published_is_read(tmp_path: Path):
    files = [{"fname": "clean-wav/a-0.9.wav", "speed": 0.9}, {"fname": "clean-wav/a.wav", "speed": 1}]
    item = {"transcript": "a word", "files": files, "original_duration": 2.5, "original_num_samples": 40000}
    (entry,) = read_entries(write_manifest(tmp_path / "m.json", item), folder=Path("data"))
    paths = (Path("data/clean-wav/a.wav"), Path("data/clean-wav/a-0.9.wav"))
    assert entry == Entry(paths, "a word", f"{tmp_path}/m.json: entry 1", 2.5)
    assert entry.name == f"data/clean-wav/a.wav ({tmp_path}/m.json: entry 1)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[{]", "m.json: Invalid JSON: "),
        ("[]", "m.json: holds no utterances"),
        ('[{"transcript": "a"}]', "m.json: entry 1: files: Field required"),
        ('[{"files": [{"fname": "a"}]}, {"files": [{}]}]', "m.json: entry 2: files: 0: fname: Field required"),
    ],
)
def test_a_bad_manifest_is_named_with_its_entry(tmp_path: Path, text: str, message: str):
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_entries(path)
    assert str(raised.value).removeprefix(f"{tmp_path}/").startswith(message)
    assert len(str(raised.value).splitlines()) == 1


def test_nemos_manifest_is_read(tmp_path: Path):
    path = tmp_path / "m.jsonl"
    (tmp_path / "b.wav").write_bytes(b"")
    line = '{"audio_filepath": "%s.wav", "duration": 1.5, "text": "ein Wort", "offset": %s}\n'
    path.write_text(line % ("a", "0.0") + "\n" + line % ("b", "null"))
    first, second = read_entries(path, folder=Path("data"))
    assert first == Entry((Path("data/a.wav"),), "ein Wort", f"{path}: entry 1", 1.5)
    assert second.paths == (tmp_path / "b.wav",)
    for text, message in ((line % ("a", "2.5"), "entry 1: offset 2.5"), ('{"text": "a"}', "entry 1: audio_filepath")):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_entries(path)


def select(source: Path, *, folder: Path = Path(), **settings: object) -> list[Entry]:
    return select_entries([source], folder=folder, settings=DatasetSettings(**settings))


def test_utterances_that_are_too_short_or_long_are_left_out_with_a_note(tmp_path: Path, capsys: pytest.CaptureFixture):
    for name, seconds in (("a", 0.05), ("b", 0.5), ("c", 2.0)):
        add_wav(tmp_path / f"{name}.wav", seconds=seconds, rate=8000)
    entries = select(tmp_path, min_duration=0.1, max_duration=1.0)
    assert [(entry.paths[0].name, entry.duration) for entry in entries] == [("b.wav", 0.5)]
    assert "2 of 3 utterances are skipped" in capsys.readouterr().out
    assert len(load_recording(entries[0].paths[0], sampling_rate=LIBRISPEECH_RATE, trim=True)) == LIBRISPEECH_RATE // 2
    with pytest.raises(InputError, match="none of 3 utterances is from 5 to 6 s long"):
        select(tmp_path, min_duration=5.0, max_duration=6.0)


def test_a_manifests_recordings_must_be_there_and_are_looked_into_when_they_are_read(tmp_path: Path):
    item = {"transcript": "A Word!", "files": [{"fname": "a.wav"}], "original_duration": 1.0}
    source = write_manifest(tmp_path / "m.json", item)
    with pytest.raises(InputError, match=r"a\.wav: no such file \(.*m\.json: entry 1\)"):
        select(source, folder=tmp_path)
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    (entry,) = select(source, folder=tmp_path)
    assert entry.normalized(DatasetSettings(), LABELS) == "a word"
    assert entry.normalized(DatasetSettings(normalize_transcripts=False), LABELS) == "a word"
    with pytest.raises(InputError, match=r"a\.wav.* \(.*m\.json: entry 1\)"):
        load_recording(entry.paths[0], sampling_rate=LIBRISPEECH_RATE, trim=False, where=entry.where)
    del item["original_duration"]
    with pytest.raises(InputError, match=r"a\.wav.* \(.*m\.json: entry 1\)"):
        select(write_manifest(source, item), folder=tmp_path)


def make_librispeech(folder: Path) -> None:
    """Two utterances of a training subset and one of another."""
    generator = np.random.default_rng(0)
    for subset, name, text in (
        ("train-clean-100", "1-2-0000", "HELLO"),
        ("train-clean-100", "1-2-0001", "GOOD BYE"),
        ("dev-clean", "3-4-0000", "YES"),
    ):
        speaker, chapter, _ = name.split("-")
        chapter_folder = folder / subset / speaker / chapter
        chapter_folder.mkdir(parents=True, exist_ok=True)
        soundfile.write(
            chapter_folder / f"{name}.flac", 0.1 * generator.standard_normal(LIBRISPEECH_RATE), LIBRISPEECH_RATE
        )
        with (chapter_folder / f"{speaker}-{chapter}.trans.txt").open("a") as file:
            file.write(f"{name} {text}\n")


def test_librispeech_becomes_wavs_with_copies_and_manifests_and_goes_on_where_it_stopped(tmp_path: Path):
    make_librispeech(tmp_path)
    variables = {"DATASET_PATH": str(tmp_path), "SPEEDS": "0.9 1.1", "N_WORKERS": "1"}
    preprocess_librispeech.start(variables, [])
    source = tmp_path / "librispeech-train-clean-100-wav.json"
    first, second = read_entries(source, folder=tmp_path)
    assert (first.transcript, second.transcript, first.duration) == ("hello", "good bye", 1.0)
    assert [path.name for path in second.paths] == ["1-2-0001.wav", "1-2-0001-0.9.wav", "1-2-0001-1.1.wav"]
    assert [file["speed"] for file in json.loads(source.read_text())[1]["files"]] == [1.0, 0.9, 1.1]
    original, slower = (load_recording(path, sampling_rate=LIBRISPEECH_RATE, trim=False) for path in first.paths[:2])
    torch.testing.assert_close(slower, change_speed(original, 0.9), rtol=0, atol=1e-4)
    (dev,) = read_entries(tmp_path / "librispeech-dev-clean-wav.json", folder=tmp_path)
    assert len(dev.paths) == 1
    kept, lost = first.paths[1], second.paths[2]
    stamp, manifest = kept.stat().st_mtime_ns, source.read_bytes()
    lost.unlink()
    source.unlink()
    preprocess_librispeech.start(variables, [])
    assert lost.is_file() and kept.stat().st_mtime_ns == stamp and source.read_bytes() == manifest


def test_a_broken_librispeech_ends_in_one_line(tmp_path: Path):
    with pytest.raises(InputError, match="train-clean-100: contains no transcripts"):
        preprocess_librispeech.start({}, ["--dataset-path", str(tmp_path)])
    make_librispeech(tmp_path)
    flac = tmp_path / "dev-clean/3/4/3-4-0000.flac"
    flac.write_bytes(flac.read_bytes()[:-2000])
    with pytest.raises(InputError, match=r"3-4-0000\.flac: .*truncated.*3-4\.trans\.txt:1"):
        words = ["--dataset-path", str(tmp_path), "--subsets", "dev-clean", "--n-workers", "1"]
        preprocess_librispeech.start({}, words)
    assert not (tmp_path / "librispeech-dev-clean-wav.json").exists()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sung_corpus(tmp_path_factory.mktemp("sung"))


def test_it_learns_what_is_sung(sung_run: Path):
    losses = logged(sung_run, "avg_train_loss")
    assert losses[-1] < 0.2 * losses[0]
    assert logged(sung_run, "val_wer")[-1] == 0.0


def dataset(
    corpus: Path, source: str = "train.txt", *, seed: int = 0, overrides: tuple[str, ...] = ()
) -> JasperDataset:
    settings = load_config(corpus / "config.yaml", overrides=overrides)
    return JasperDataset(TrainingOptions(settings=settings, dataset_path=corpus, seed=seed), [corpus / source])


def test_what_training_reads_is_decided_by_seed_epoch_and_index(corpus: Path):
    overrides = ("input_train.audio_dataset.speed_perturbation.p=1.0",)
    first, again = dataset(corpus, overrides=overrides), dataset(corpus, overrides=overrides)
    for index, epoch in ((3, 1), (0, 2), (3, 1)):
        one, other = first.draw(index, epoch=epoch), again.draw(index, epoch=epoch)
        assert torch.equal(one.waves, other.waves) and torch.equal(one.draws, other.draws)
    lengths = {first.draw(3, epoch=epoch).wave_lengths.item() for epoch in range(8)}
    assert len(lengths) > 4, "other speeds in other epochs"
    other = dataset(corpus, seed=1, overrides=overrides)
    assert other.draw(3, epoch=1).wave_lengths != first.draw(3, epoch=1).wave_lengths
    assert torch.equal(first[3].waves, again[3].waves) and first[3].draws is None


def test_copies_of_other_speeds_are_read_as_often_as_the_original_or_not_at_all(tmp_path: Path):
    corpus = make_sung_corpus(tmp_path)
    for name, n_samples in (("a", 2000), ("a-0.9", 2222), ("a-1.1", 1818)):
        save_wav(corpus / f"{name}.wav", 0.1 * torch.randn(n_samples), sampling_rate=RATE)
    files = [{"fname": "a.wav", "speed": 1}, {"fname": "a-0.9.wav", "speed": 0.9}, {"fname": "a-1.1.wav", "speed": 1.1}]
    (corpus / "m.json").write_text(json.dumps([{"transcript": "do", "files": files, "original_duration": 0.25}]))
    overrides = ("input_train.audio_dataset.speed_perturbation.p=0.0", "input_train.audio_dataset.trim_silence=false")
    found = dataset(corpus, "m.json", overrides=overrides)
    heard = [found.draw(0, epoch=epoch).wave_lengths.item() for epoch in range(60)]
    assert set(heard) == {2000, 2222, 1818}
    assert all(heard.count(length) > 10 for length in set(heard))
    overrides += ("input_train.audio_dataset.ignore_offline_speed_perturbation=true",)
    ignoring = dataset(corpus, "m.json", overrides=overrides)
    assert {ignoring.draw(0, epoch=epoch).wave_lengths.item() for epoch in range(20)} == {2000}
    assert dataset(corpus, "m.json", overrides=overrides[:2])[0].wave_lengths.item() == 2000


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0.wav", "train.txt:1: 1 columns"),
        ("absent.wav|do", r"absent\.wav: no such file \(.*train\.txt:25\)"),
        ("0.wav|", r"0\.wav \(.*train\.txt:25\): its transcript '' has none of the model's characters"),
        ("0.wav|xyz", r"0\.wav \(.*train\.txt:25\): its transcript 'xyz' has none of the model's characters"),
        (f"0.wav|{'do ' * 20}", r"0\.wav \(.*train\.txt:25\): 0\.\d\d s is too short for its transcript"),
        ("0.wav|do 3 mi 1999", r"0\.wav \(.*train\.txt:25\): no labels for 3, 1999 in its transcript"),
        ("0.wav|dö größe", r"train\.txt:25: 'dö' has 'ö', .* labels"),
        ("broken.wav|do", r"broken\.wav \(.*train\.txt:25\): truncated"),
    ],
)
def test_bad_lists_end_in_one_line_that_names_the_entry(corpus: Path, tmp_path: Path, line: str, message: str):
    (tmp_path / "train.txt").write_text((corpus / "train.txt").read_text() + line + "\n")
    (corpus / "broken.wav").write_bytes((corpus / "0.wav").read_bytes()[:999])
    options = training_options(corpus, tmp_path / "o", "--epochs", "1", "--training-files", str(tmp_path / "train.txt"))
    if "1999" in line:  # else it is read in English
        options += ["--override-config", "input_train.audio_dataset.normalize_transcripts=false"]
    if line == "0.wav":
        (tmp_path / "train.txt").write_text("0.wav\n")
        message = r"0\.wav \(.*train\.txt:1\): no transcript; training and validation need one for every utterance"
    with pytest.raises(InputError, match=message) as raised:
        train.main(options)
    assert len(str(raised.value).splitlines()) == 1


FOLDER = "jasper"
CPU = torch.device("cpu")
BEST, EPOCH, V1, FULL = (first_matching(f"jasper/checkpoints/*{name}*") for name in ("best", "epoch", "v1", "full"))


def test_keys_of_the_first_version_are_those_of_the_second(folder: Path):
    found = load_checkpoint(V1)
    networks, _ = load_networks(found, device=CPU)
    old = torch.load(V1, weights_only=True)["state_dict"]
    state = networks["jasper"].state_dict()
    # Its other keys are a buffer of the features, and a number that nothing needs.
    assert len(state) == len([*group(old, "jasper_encoder"), *group(old, "jasper_decoder")])
    assert torch.equal(state["encoder.layers.0.conv.0.weight"], old["jasper_encoder.encoder.0.conv.0.weight"])
    assert torch.equal(state["decoder.layers.0.bias"], old["jasper_decoder.decoder_layers.0.bias"])
    assert found.training is None


def test_the_full_size_checkpoint_is_of_the_full_size_network(folder: Path):
    found = load_checkpoint(FULL, training=False)
    config = found.config
    assert config == load_config(CONFIGS / "jasper10x5dr_speca.yaml").model
    assert found.audio == config.features.audio


def test_the_optimizers_state_goes_to_the_parameters_it_was_of(folder: Path):
    layout = read_golden(folder / "checkpoints.json", "layout", EPOCH.name)
    found = load_checkpoint(EPOCH)
    assert (found.training["epoch"], found.training["iteration"]) == (layout["epoch"], layout["step"])
    network = Jasper(found.config)
    named = {f"jasper.{name}": parameter for name, parameter in network.named_parameters()}
    optimizer = Novograd(named.values(), 0.01, weight_decay=1e-3)
    load_state_by_name(optimizer, found.training["optimizers"]["jasper"], named, where="x.pt")
    old = torch.load(EPOCH, weights_only=True)["optimizer"]["state"]
    assert len(old) == len(named)
    for number, parameter in enumerate(named.values()):
        assert torch.equal(optimizer.state[parameter]["exp_avg"], old[number]["exp_avg"])
        assert torch.equal(optimizer.state[parameter]["exp_avg_sq"], old[number]["exp_avg_sq"])
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    assert int(optimizer.state[next(iter(named.values()))]["step"]) == old[0]["step"] + 1


def yaml_of(folder: Path, path: Path, **changes: str) -> Path:
    """The YAML file of the small published checkpoints, in its published form, with parts of its text replaced."""
    published = yaml.safe_load((CONFIGS / "jasper10x5dr_speca.yaml").read_text())
    published["jasper"] = read_golden(folder / "checkpoints.json", "config")
    text = yaml.safe_dump(published, sort_keys=False)
    for old, new in changes.items():
        assert f"{old}:" in text
        text = re.sub(rf"\b{old}: .*", f"{old}: {new}", text)
    path.write_text(text)
    return path


def test_a_checkpoint_is_converted_with_its_yaml_file(folder: Path, tmp_path: Path):
    convert([str(EPOCH), str(tmp_path / "a.pt"), "--config", str(yaml_of(folder, tmp_path / "a.yaml"))])
    plain, given = load_checkpoint(EPOCH), load_checkpoint(tmp_path / "a.pt")
    configs = [one.config for one in (given, plain)]
    assert configs[0] == configs[1]
    assert (given.audio, given.assumed, given.assumed_config) == (plain.audio, (), ())
    assert plain.assumed and plain.assumed_config and given.training["epoch"] == plain.training["epoch"]
    other = yaml_of(folder, tmp_path / "b.yml", use_conv_masks="false", window="hamming", window_stride="0.0125")
    convert([str(EPOCH), str(tmp_path / "b.pt"), "--config", str(other)])
    found = load_checkpoint(tmp_path / "b.pt")
    config = found.config
    assert (config.use_conv_masks, config.features.window, found.audio.hop_length) == (False, "hamming", 200)
    tensors = load_file(folder / "checkpoints_expected.safetensors")
    names = {"a.pt": True, "b.pt": False}  # padding is masked as the stored numbers have it, or not
    for name, is_expected in names.items():
        networks, _ = load_networks(load_checkpoint(tmp_path / name), device=CPU)
        log_probs = networks["jasper"].infer(tensors["input.x"], tensors["input.lens"]).log_probs
        assert torch.allclose(log_probs, tensors["output.state_dict"], atol=3e-5, rtol=0) == is_expected
