"""YAML of a file that anyone may have written: plain values alone, with what aliases make of them bounded."""

import re
from collections import Counter
from typing import Any

import yaml
from yaml.error import MarkedYAMLError

from common.errors import InputError, reason, shown

_DEEPEST = 50  # collections within collections
_MOST_NODES = 20_000  # values, an alias counted as all that it stands for

_SURROGATE = re.compile(r"[\ud800-\udfff]")


class _Loader(yaml.SafeLoader):
    """Refuses what is no plain value, and refuses size before the values are made."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._sizes: dict[int, int] = {}  # nodes within a node, by its identity

    def compose_node(self, parent: Any, index: Any) -> Any:
        """As the class before it."""
        event = self.peek_event()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _refusal(f"nested too deeply, expected at most {_DEEPEST} levels", event)
        if getattr(event, "tag", None) is not None:
            raise _refusal(f"tag {shown(event.tag)}, expected none", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(event, yaml.AliasEvent):
            if id(node) not in self._sizes:
                raise _refusal(f"alias {shown(event.anchor)} within what it stands for", event)
            return node
        children = node.value if isinstance(node, yaml.CollectionNode) else []
        if isinstance(node, yaml.ScalarNode) and (half := _SURROGATE.search(node.value)):
            raise _refusal(f"{shown(half[0])} is half a character, expected both halves", event)
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
            children = [one for pair in children for one in pair]
        self._sizes[id(node)] = size = 1 + sum(self._sizes[id(child)] for child in children)
        if size > _MOST_NODES:
            raise _refusal(f"more than {_MOST_NODES} values, with what aliases stand for", event)
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """As the class before it."""
        try:
            value = super().construct_object(node, deep=deep)
            if isinstance(value, int):
                float(value)  # none that is larger can be compared or computed with
            return value
        except (ValueError, ArithmeticError) as error:
            problem = (
                "a number of too many digits" if "digits" in str(error) or "too large" in str(error) else str(error)
            )
            raise MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error


# YAML 1.1 reads 1e-5, which has no point, as a word.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def _check_keys(node: yaml.MappingNode) -> None:
    merge = "tag:yaml.org,2002:merge"
    keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.tag != merge]
    if (most := Counter(key.value for key in keys).most_common(1)) and most[0][1] > 1:
        again = [key for key in keys if key.value == most[0][0]][1]
        raise _refusal(f"key {shown(again.value)} twice", again)


def _refusal(problem: str, place: Any) -> MarkedYAMLError:
    return MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


def parse_yaml(text: str, *, where: str) -> Any:
    """The values of a text that ``where`` names; InputError, which names the line, where it is not YAML, has tags, or
    is nested too deeply or too large, with its aliases replaced by what they stand for."""
    reader: _Loader | None = None
    try:
        reader = _Loader(text)
        try:
            return reader.get_single_data()
        finally:
            reader.dispose()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = "" if mark is None else f":{mark.line + 1}"
        raise InputError(f"{where}{line}: not YAML ({error.problem or error.context})") from error
    except yaml.reader.ReaderError as error:
        number = text.count("\n", 0, error.position) + 1
        raise InputError(f"{where}:{number}: not YAML (character {shown(chr(error.character))})") from error
    # PyYAML converts what is escaped or a version without a check: \\UFFFFFFFF, %YAML 999...9.1
    except (ValueError, ArithmeticError, LookupError, RecursionError) as error:
        line = "" if reader is None else f":{reader.line + 1}"
        raise InputError(f"{where}{line}: not YAML ({reason(error)})") from error
