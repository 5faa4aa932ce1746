"""JSON and YAML: what is none is one line that names the file and the line."""

import json
import re
from typing import Any

from common.errors import InputError, reason


def parse_json(text: str, *, where: str) -> Any:
    """The values of a JSON text (RFC 8259: no NaN), which ``where`` names; InputError where it is none."""

    def refuse(word: str) -> None:
        raise InputError(f"{where}: not JSON ({word} is not a number in JSON)")

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}:{error.lineno}: not JSON ({error.msg})") from error


def parse_yaml(text: str, *, where: str) -> Any:
    """The plain values of a YAML text, which ``where`` names; InputError where it is none, or names anything else."""
    import yaml  # here, as few commands need it

    class Loader(yaml.SafeLoader):
        """Reads 1e-5 as a number, which without a point is a word in YAML 1.1."""

    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
    )
    try:
        return yaml.load(text, Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = "" if mark is None else f":{mark.line + 1}"
        raise InputError(f"{where}{line}: not YAML ({error.problem or error.context})") from error
    except (yaml.YAMLError, ValueError) as error:  # of characters, dates and the like
        raise InputError(f"{where}: not YAML ({reason(error)})") from error
