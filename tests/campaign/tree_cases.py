"""Malformed JSON and YAML: audio.json, config.json, manifests, Jasper's configuration."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import foreign
import yaml
from harness import Case
from hypothesis import strategies as st
from sung_words import CONFIG
from values import PLAIN, Mutation, mutations, places_of, text_mutations, write_file
from world import World

Writer = Callable[[World, Path, str | bytes], list[str]]  # writes the file, and returns the words of the command


def _audio(world: World, folder: Path, data: str | bytes) -> list[str]:
    write_file(folder / "mels" / "audio.json", data)
    shutil.copy(world.folder / "mel.pt", folder / "mels" / "a.pt")
    write_file(folder / "one.tsv", "output\tmel\na.wav\tmels/a.pt\n")
    return ["-i", str(folder / "one.tsv"), "--dataset-path", str(folder), "-o", "out", "--hifigan", str(world.vocoder)]


def _authors(world: World, folder: Path, data: str | bytes) -> list[str]:
    shutil.copy(world.folder / "authors" / "g_00000005", folder / "g_00000005")
    write_file(folder / "config.json", data)
    return world.speak(folder / "g_00000005", "--hifigan")


def _manifest(world: World, folder: Path, data: str | bytes) -> list[str]:
    write_file(folder / "list.json", data)
    return ["--jasper", str(world.folder / "jasper.pt"), "-i", "list.json", "-d", str(world.folder / "sung")]


def _yaml(world: World, folder: Path, data: str | bytes) -> list[str]:
    write_file(folder / "config.yaml", data)
    words = world.train_recognizer(world.folder / "sung", folder / "config.yaml")
    return [*words, "--training-files", str(world.folder / "sung" / "absent.txt")]  # found out after the configuration


MANIFEST = [{"transcript": "do", "files": [{"fname": "0.wav", "speed": 1}], "original_duration": 0.4}] * 2


def _targets(world: World) -> dict[str, tuple[str, Any, Writer]]:
    audio = json.loads((world.folder / "audio.json").read_text())
    return {
        "audio.json": ("inference", audio, _audio),
        "config.json": ("inference", foreign.authors_config(), _authors),
        "manifest.json": ("inference", MANIFEST, _manifest),
    }


def json_files(world: World) -> st.SearchStrategy[Case]:
    """JSON files with a wrong value in one place, or wrong bytes."""
    targets = _targets(world)
    places = {name: list(places_of(tree)) for name, (_, tree, _) in targets.items()}

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        name = draw(st.sampled_from(list(targets)))
        program, tree, write_into = targets[name]
        how = draw(st.sampled_from(["value", "value", "bytes"]))
        make: Callable[[], str | bytes]
        if how == "value":
            mutation = draw(mutations(places[name], PLAIN))
            unread = {"original_duration", "speed", "speaker"} & set(mutation.place)
            label, wrong = mutation.label, mutation.is_wrong(tree) and not unread
            make = partial(_json_of, mutation, tree)
        else:
            change = draw(text_mutations)
            label = change.label
            wrong = label in ("empty file", "zero bytes", "only spaces", "PNG") or change.name == "truncated"
            make = partial(change.applied, json.dumps(tree).encode())
        return Case(
            f"{name} {label}", program, lambda folder: write_into(world, folder, make()), wrong=wrong, status=None
        )

    return cases()


def _json_of(mutation: Mutation, tree: Any) -> str:
    return json.dumps(mutation.applied(tree))


BOMBS = {
    "python tag": "jasper: !!python/object/apply:os.system ['touch canary']",
    "python name": "jasper: !!python/name:os.system",
    "unknown tag": "jasper: !x 1",
    "date": "jasper: 2020-99-99",
    "two documents": "a: 1\n---\nb: 2\n",
    "tab": "jasper:\n\tencoder: 1\n",
    "duplicate key": CONFIG + "jasper: {}\n",
    "labels without quotes": CONFIG.replace("d, e, i, m, o, r", "d, e, n, y, o, r"),
}


def yaml_files(world: World) -> st.SearchStrategy[Case]:
    """Jasper's configuration with a wrong value in one place, wrong bytes, or what YAML alone has."""
    tree = yaml.safe_load(CONFIG)
    places = list(places_of(tree))

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        how = draw(st.sampled_from(["value", "value", "bomb", "bytes"]))
        make: Callable[[], str | bytes]
        if how == "value":
            mutation = draw(mutations(places, PLAIN))
            label, make = mutation.label, partial(_yaml_of, mutation, tree)
        elif how == "bomb":
            label = draw(st.sampled_from(list(BOMBS)))
            make = partial(BOMBS.__getitem__, label)
        else:
            change = draw(text_mutations)
            label, make = change.label, partial(change.applied, CONFIG.encode())
        # The list that the command names does not exist, so that a good configuration is refused too, by another line.
        return Case(f"{how}: {label}", "train", lambda folder: _yaml(world, folder, make()), status=None)

    return cases()


def _yaml_of(mutation: Mutation, tree: Any) -> str:
    return yaml.safe_dump(mutation.applied(tree), allow_unicode=True)
