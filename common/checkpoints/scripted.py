"""TorchScript files, checked before PyTorch opens them: their code may name no operator but those of our networks.

PyTorch's operators open and write files, and `torch.jit.load` runs some code itself. Code is judged by its words, not
by a parser that could read it otherwise than PyTorch's: whatever calls an operator has the operator's name in it.
"""

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import torch

from common.errors import CheckpointError, shown
from common.formats.torch_file import RefusedNameError, UnreadableError, read_torch_file

ARCHIVE_ENTRY = "speech_toolkit.json"  # in an archive's folder "extra"

_LARGEST_CODE = 1 << 24  # bytes, with what it says of its sources; of our networks 200,000
_LONGEST_STATEMENT = 4000  # characters; PyTorch's parser calls itself for what is nested
_DEEPEST = 50  # brackets within each other, and spaces before a line
_NO_CONSTANTS = b"\x80\x02)."  # a pickle of an empty tuple; our networks' tensors are parameters and buffers
_RECORD = re.compile(
    rf"data\.pkl|constants\.pkl|version|byteorder|\.data/serialization_id|data/\d+|extra/{re.escape(ARCHIVE_ENTRY)}"
    r"|code/__torch__(/[\w/]+)?\.py(\.debug_pkl)?",
    re.ASCII,
)
_STRING = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NAME = re.compile(r'"\w+"', re.ASCII)  # a string that could be an attribute's
_GETATTR = re.compile(r'\bgetattr\b(?!\(\w+, "\w+"\))', re.ASCII)  # otherwise than of a name
_QUOTED = re.compile(r'"\w*"', re.ASCII)
_CHARACTERS = re.compile(r"[\w\s.,:()\[\]=>-]*", re.ASCII)  # of code without its strings
_CALLED = re.compile(r"\b(?:torch|ops\.\w+)\.(\w+)", re.ASCII)  # operators, which are named before variables are
_MANGLED = re.compile(r"___torch_mangle_\d+")
_RESERVED = frozenset(
    "__torch__ __parameters__ __buffers__ __annotations__ __len__ __is__ __isnot__ __not__ __contains__ "
    "__derive_index __range_length".split()
)
_REFUSED = frozenset("and as assert await awaitable classes del fork from global import is lambda not or print".split())
_REFUSED |= frozenset("raise rpc_remote rpc_sync while with yield".split())
# Operators of our networks, and those whose names their variables, fields and modules have. All compute alone.
_OPERATORS = frozenset(
    """
    Generator RaiseException __contains__ __derive_index __is__ __isnot__ __not__ __range_length
    _pack_padded_sequence _pad_packed_sequence _set_item add add_ all annotate append arange argmax as_tensor
    backward batch_norm bitwise_not bmm cat chunk clamp contiguous conv1d conv2d conv_transpose1d
    conv_transpose2d cos cpu cumsum data device dim div div_ dropout dropout_ dtype embedding empty_like eq exp
    expand flatten floor floordiv format gather ge gt hardtanh hardtanh_ index index_select inner inverse isnan
    layer_norm layout le leaky_relu leaky_relu_ len linear list log_softmax lstm lt masked_fill matmul max mean
    minimum mode mul mul_ name ne neg norm numel permute pin_memory pow range relu relu_ reshape
    scaled_dot_product_attention scatter_ scatter_add searchsorted select selu selu_ sigmoid sin size slice
    softmax sort split squeeze stack std str stride sub sum tanh tensor to transpose type unbind unchecked_cast
    unflatten unsqueeze view warn where zeros
    """.split()
)


def check_script(path: Path) -> None:
    """Refuse a TorchScript file that could do more than compute; nothing of it has run then.

    Raises:
        CheckpointError: its code names another operator than our networks do, it holds objects of other classes,
            or it is damaged.
    """
    try:
        _check_objects(path)
        found = next(_problems(torch._C.PyTorchFileReader(str(path))), None)
    except RefusedNameError as error:
        found = f"holds {error}"
    except (RuntimeError, UnreadableError) as error:
        raise CheckpointError(f"{path}: PyTorch cannot read it ({shown(str(error).partition(chr(10))[0])})") from error
    if found is not None:
        raise CheckpointError(
            f"{path}: {found}, which no network of ours does; such files can write files and more: "
            "give one that scripts/export_model.sh wrote"
        )


def _check_objects(path: Path) -> None:
    """Raise for objects of unknown classes, and tensors beyond what is stored, both of which PyTorch would make."""
    read_torch_file(path, values=False, scripted=True)


def _problems(reader: "torch._C.PyTorchFileReader") -> Iterator[str]:
    """What an archive has that ours have not; ``reader`` is the one that `torch.jit.load` reads with."""
    names = reader.get_all_records()
    yield from (f"has a file {shown(name)}" for name in names if not _RECORD.fullmatch(name))
    if len({name.lower() for name in names}) < len(names):
        yield "has several files of one name"
    code = [name for name in names if name.startswith("code/")]
    if sum(map(reader.get_record_size, code)) > _LARGEST_CODE:
        yield f"has code of more than {_LARGEST_CODE} bytes"
    if reader.get_record("constants.pkl") != _NO_CONSTANTS:
        yield "has constants beside its weights"
    for name in code:
        if name.endswith(".py"):
            yield from problems_of_code(reader.get_record(name).decode("latin-1"))


def problems_of_code(code: str) -> Iterator[str]:
    """What code has that ours has not, as TorchScript writes it.

    A string counts where it could be an attribute's name. `_STRING` finds the strings that PyTorch's parser finds, as
    there are no comments, no other quotes and no strings side by side, which that parser joins.
    """
    rest = _STRING.sub(lambda found: found[0] if _NAME.fullmatch(found[0]) else '""', code)
    if not _CHARACTERS.fullmatch(_QUOTED.sub("", rest)) or '"""' in code or re.search(r'"\w*"\s*"', rest):
        yield "has code that is not as TorchScript writes it"
    if _GETATTR.search(rest):
        yield "calls getattr of what is no name"
    for word in dict.fromkeys([*_CALLED.findall(rest), *_WORD.findall(rest)]):
        if word in _REFUSED or (word[:2] == "__" and word not in _RESERVED and not _MANGLED.fullmatch(word)):
            yield f"has {word} in its code"
        if word not in _OPERATORS and (operator := _known_operators().get(word)):
            yield f"calls {operator}"
    if re.search(r"\bops\b(?!\.prim\.)", rest):
        yield "calls operators of another namespace"
    depth, start = 0, 0  # of the brackets; where a statement begins
    for bracket in re.finditer(r"[()\[\]\n]", rest):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(bracket[0], 0)
        if depth > _DEEPEST or bracket.end() - start > _LONGEST_STATEMENT:
            yield "has code that is nested too deeply"
        if bracket[0] == "\n" and depth <= 0:
            start = bracket.end()
    if re.search(rf"^ {{{_DEEPEST}}}", rest, re.MULTILINE):
        yield "has code that is nested too deeply"


@functools.cache
def _known_operators() -> dict[str, str]:
    """All operators of this PyTorch: the name without its namespace -> with it."""
    return {schema.name.partition("::")[2]: schema.name for schema in torch._C._jit_get_all_schemas()}
