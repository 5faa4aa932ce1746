"""The generators by name."""

from collections.abc import Callable

import corpus_cases
import hostile_cases
import speech_cases
import tree_cases
from harness import Case
from hypothesis.strategies import SearchStrategy
from world import World

GENERATORS: dict[str, Callable[[World], SearchStrategy[Case]]] = {
    "list": corpus_cases.lists,
    "recording": corpus_cases.recordings,
    "json": tree_cases.json_files,
    "yaml": tree_cases.yaml_files,
    "pickle": hostile_cases.pickles,
    "container": hostile_cases.containers,
    "ssml": speech_cases.ssml,
    "option": speech_cases.options,
    "script": speech_cases.variables,
    "http": speech_cases.http,
}
