"""The YAML files say what the published ones say, and a wrong key is one line that names file and key."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from common.errors import InputError, OptionError
from jasper.config import LABELS
from jasper.yaml_config import CONFIGS, SpeedPerturbation, load_config

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


@pytest.mark.parametrize(
    ("override", "message"),
    [("input_train", "expected key=value"), ("jasper.encoder.blocks.99.filters=1", "has no such key")],
)
def test_an_override_that_makes_no_sense_is_named(override: str, message: str):
    with pytest.raises(OptionError, match=message) as caught:
        load_config(SPECA, overrides=[override])
    assert str(caught.value).startswith(f"--override-config {override.partition('=')[0][:90]}")


@pytest.mark.parametrize(
    ("content", "message"), [("a: [", "not YAML"), ("- 1", "Input should be an object"), (None, "no such")]
)
def test_a_file_that_is_no_configuration_is_one_clear_line(tmp_path: Path, content: str | None, message: str):
    path = tmp_path / "x.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"{path}:") and "\n" not in str(caught.value)
