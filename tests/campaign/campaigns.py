"""The generators by name."""

from collections.abc import Callable

import checkpoint_cases
import corpus_cases
import graph_cases
import hostile_cases
import speech_cases
import tree_cases
from harness import Case
from hypothesis.strategies import SearchStrategy
from world import World

GENERATORS: dict[str, Callable[[World], SearchStrategy[Case]]] = {
    "checkpoint": lambda world: checkpoint_cases.trees(world, checkpoint_cases.OWN),
    "published": lambda world: checkpoint_cases.trees(world, checkpoint_cases.PUBLISHED),
    "training": checkpoint_cases.training_states,
    "container": checkpoint_cases.containers,
    "list": corpus_cases.lists,
    "textgrid": corpus_cases.textgrids,
    "recording": corpus_cases.recordings,
    "features": corpus_cases.features,
    "json": tree_cases.json_files,
    "yaml": tree_cases.yaml_files,
    "pickle": hostile_cases.pickles,
    "archive": hostile_cases.archives,
    "exported": lambda world: hostile_cases.exported(world) | graph_cases.graphs(world),
    "ssml": speech_cases.ssml,
    "option": speech_cases.options,
    "script": speech_cases.variables,
    "http": speech_cases.http,
}
