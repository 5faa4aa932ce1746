"""Networks compiled by torch.compile at inference, which go on uncompiled where that fails."""

import logging
import sys
from typing import Any, Protocol

import torch
from torch._dynamo.exc import TorchDynamoException


class Infers(Protocol):
    """A network of any role."""

    def infer(self, *args: Any) -> Any:
        """What the role says."""


class CompiledNetwork:
    """A network whose ``infer`` is compiled for any batch size and length when it is first called.

    Where compiling fails (without a C++ compiler, for one) the network runs as it is, after one warning.
    """

    def __init__(self, network: Infers, *, name: str) -> None:
        """``name`` stands in the warning."""
        self._network = network
        self._name = name
        # What the compiler warns of is where it splits the work, which is of no use to who speaks.
        torch._logging.set_logs(dynamo=logging.ERROR)
        self._compiled = torch.compile(network.infer, dynamic=True)

    def infer(self, *args: Any) -> Any:
        """As the network's own."""
        if self._compiled is not None:
            try:
                return self._compiled(*args)
            except TorchDynamoException as error:
                reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
                print(f"warning: --compile: {self._name} runs uncompiled ({reason.strip()})", file=sys.stderr)
                self._compiled = None
        return self._network.infer(*args)
