"""Malformed checkpoints: every field of ours, the published layouts, and the files that hold them."""

import copy
from pathlib import Path
from typing import Any

import torch
from harness import Case
from hypothesis import strategies as st
from values import PLAIN, at, mutations, places_of, tensors, text_mutations, variations
from world import World

OWN = {"voice": "--fastpitch", "tacotron2": "--tacotron2", "vocoder": "--hifigan", "waveglow": "--waveglow"}
OWN["jasper"] = "--jasper"
PUBLISHED = {
    "fastpitch_1_0": "--fastpitch",
    "fastpitch_1_1": "--fastpitch",
    "published_tacotron2": "--tacotron2",
    "published_waveglow": "--waveglow",
    "published_jasper": "--jasper",
}
# What is not read by a command that speaks or transcribes, and weights that it does not take.
UNREAD = ("training", "epoch", "iteration", "best_wer", "train_setup", "assumed", "ema", "ema_state_dict")

UNRESUMED = {"best", "random", "sums"}  # not of every run
# Of a weight or an average of the same size and another type, or of another size: of no network.
MOMENTS = ("exp_avg", "exp_avg_sq")
SPOILT = "one value spoilt"
UNFIT = ("a row less", "a row more", "whole numbers", SPOILT)


def _payload(path: Path) -> Any:
    payload = torch.load(path, weights_only=True)
    if "networks" in payload:  # what only some checkpoints of ours have
        return {**payload, "ema": copy.copy(payload["networks"]), "assumed": ["peak"], "assumed_config": []}
    return payload


def _consumers(world: World, option: str) -> dict[str, Any]:
    return {
        "inference": lambda path: world.speak(path, option),
        "scripts.inspect_checkpoint": lambda path: [str(path)],
        "scripts.strip_checkpoint": lambda path: [str(path), "out/stripped.pt"],
        "scripts.convert_checkpoint": lambda path: [str(path), "out/converted.pt"],
    }


def trees(world: World, names: dict[str, str]) -> st.SearchStrategy[Case]:
    """Checkpoints with another value in one place."""
    payloads = {name: _payload(world.folder / f"{name}.pt") for name in names}
    places = {name: list(places_of(payload)) for name, payload in payloads.items()}
    values = PLAIN | tensors()

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        name = draw(st.sampled_from(list(names)))
        consumers = _consumers(world, names[name])
        program = draw(st.sampled_from(["inference", "inference", "inference", *consumers]))
        payload = payloads[name]
        varied = draw(st.sampled_from([False, False, True]))
        mutation = draw(variations(places[name], payload) if varied else mutations(places[name], values))
        first = mutation.place[0] if mutation.place else ""
        is_read = program == "inference" and first not in UNREAD and name in OWN
        wrong = is_read and not varied and mutation.is_wrong(payload)
        if isinstance(at(payload, mutation.place), torch.Tensor):  # a weight of another size or kind of number
            value = mutation.value
            wrong &= not isinstance(value, torch.Tensor) or value.is_complex()
            unfit = mutation.name in UNFIT and mutation.place[-1] != "num_batches_tracked"
            averaged = "ema" in payload and mutation.name == SPOILT  # of these weights the averages are computed with
            wrong |= is_read and varied and unfit and not averaged

        def write(folder: Path) -> list[str]:
            path = folder / "checkpoint.pt"
            torch.save(mutation.applied(payload), path)
            return consumers[program](path)

        return Case(f"{program} {name} {mutation.label}", program, write, wrong=wrong, status=None)

    return cases()


def training_states(world: World) -> st.SearchStrategy[Case]:
    """Checkpoints to resume training from, with another value in one place of the training state."""
    payload = torch.load(world.folder / "trained" / "out" / "HiFi-GAN_checkpoint_1.pt", weights_only=True)
    places = [("training", *place) for place in places_of(payload["training"])]
    values = PLAIN | tensors()

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        varied = draw(st.sampled_from([False, False, True]))
        mutation = draw(variations(places, payload) if varied else mutations(places, values))
        by_name = draw(st.booleans())
        unread = UNRESUMED & set(mutation.place)
        if mutation.place[-1] == "step":  # of an optimizer: a tensor without dimensions, and a number is as good
            unread |= {"step"} if isinstance(mutation.value, int | float) or mutation.name == "no dimension" else set()

        def write(folder: Path) -> list[str]:
            path = folder / "out" / "HiFi-GAN_checkpoint_1.pt"
            path.parent.mkdir()
            torch.save(mutation.applied(payload), path)
            words = ["--checkpoint-path", str(path)] if by_name else ["--resume"]
            return world.train_vocoder(world.folder / "wavs", *words)

        wrong = mutation.is_wrong(payload) and not unread
        if varied:
            wrong = mutation.place[-1] in MOMENTS and mutation.name in UNFIT
            wrong |= mutation.place[-1] == "states" and mutation.name != "reversed"
        return Case(f"{'file' if by_name else 'folder'} {mutation.label}", "train", write, wrong=wrong)

    return cases()


def containers(world: World) -> st.SearchStrategy[Case]:
    """Checkpoints whose bytes are changed."""
    files = {**OWN, **PUBLISHED}

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        name = draw(st.sampled_from(list(files)))
        form = draw(st.sampled_from(["zip", "legacy"]))
        mutation = draw(text_mutations)
        consumers = _consumers(world, files[name])
        program = draw(st.sampled_from(["inference", "inference", "scripts.inspect_checkpoint"]))

        def write(folder: Path) -> list[str]:
            path = folder / "checkpoint.pt"
            payload = torch.load(world.folder / f"{name}.pt", weights_only=True)
            torch.save(payload, path, _use_new_zipfile_serialization=form == "zip")
            path.write_bytes(mutation.applied(path.read_bytes()))
            return consumers[program](path)

        wrong = mutation.label in ("empty file", "PNG", "gzip", "UTF-16", "zero bytes")
        return Case(f"{program} {form} {name} {mutation.label}", program, write, wrong=wrong)

    return cases()
