"""Networks compiled at inference: by TorchScript, or by torch.compile, which falls back to the network as it is."""

import logging
import sys
from collections.abc import Callable
from typing import Any

import torch

from common.checkpoints import LoadedCheckpoint
from common.errors import OptionError
from common.precision import allow_compiled_shapes
from common.registry import GeneratorSpec, VocoderSpec
from common.synthesis.padding import PaddedShapes


class CompiledNetwork:
    """A network whose ``infer`` is compiled when it is first called: for any batch size and length, or for each shape.

    Where compiling fails (without a C++ compiler, for one) the network runs as it is, after one warning.
    """

    def __init__(self, network: Any, *, name: str, shapes: PaddedShapes | None = None) -> None:
        """``name`` stands in the warning; ``shapes`` are those that batches have."""
        self._network = network
        self._name = name
        # The compiler warns where it splits the work, which is of no use to the user.
        torch._logging.set_logs(dynamo=logging.ERROR)
        if shapes is not None:
            allow_compiled_shapes(shapes.n_shapes)
        self._compiled: Callable[..., Any] | None = torch.compile(network.infer, dynamic=shapes is None)

    def infer(self, *args: Any, **kwargs: Any) -> Any:
        """Run the compiled ``infer``, or the network's own with one warning if it cannot be compiled."""
        if self._compiled is not None:
            from torch._dynamo.exc import TorchDynamoException  # here, as the compiler takes seconds to load

            try:
                return self._compiled(*args, **kwargs)
            except TorchDynamoException as error:
                reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
                print(f"warning: --compile: {self._name} runs uncompiled ({reason.strip()})", file=sys.stderr)
                self._compiled = None
        return self._network.infer(*args, **kwargs)


def accelerated(
    network: Any, loaded: LoadedCheckpoint, *, torchscript: bool, compile: bool, shapes: PaddedShapes | None
) -> Any:
    """The network of a checkpoint as ``--torchscript`` or ``--compile`` have it, the latter for ``shapes`` alone.

    Raises:
        OptionError: the model cannot be compiled so.
    """
    spec = loaded.spec
    assert isinstance(spec.inference, GeneratorSpec | VocoderSpec)
    if loaded.exported is not None and (torchscript or compile):
        option = "--torchscript" if torchscript else "--compile"
        raise OptionError(f"{option}: {loaded.path} is compiled already; leave it out, or give the checkpoint")
    if torchscript:
        if spec.inference.to_torchscript is None:
            raise OptionError(f"--torchscript: {spec.name} has no TorchScript; leave it out")
        return spec.inference.to_torchscript(network)
    if compile and spec.inference.not_compilable is not None:
        raise OptionError(f"--compile: {spec.inference.not_compilable}; leave it out")
    return CompiledNetwork(network, name=spec.name, shapes=shapes) if compile else network
