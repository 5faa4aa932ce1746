"""``python -m common.launch``: ``torchrun``, whose options it takes, with one line for a process that was killed.

All else that ends a process it has said itself, and ``torchrun`` would add pages of its own.
"""

import logging
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from torch.distributed import run
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import RendezvousError

from common.distributed import AFTER_LOSS, LAUNCHED
from common.errors import reason
from common.signals import Requests, heeded


def main(argv: Sequence[str]) -> int:
    """Start processes; the exit status is the first failed one's, or 128 + the signal that ended it or this process."""
    os.environ[LAUNCHED] = "1"
    logging.disable()
    requests = Requests()

    def end(number: int, frame: FrameType | None) -> None:
        if requests.counts(number):
            raise SignalException(f"received {number}", signal.Signals(number))

    for stop in heeded():  # torchrun would answer SIGHUP under nohup too, and a terminal that hangs up twice
        signal.signal(stop, end)
    try:
        run.main(["--signals-to-handle", "SIGQUIT", *argv])
    except ChildFailedError as error:
        killed = {rank: failure for rank, failure in error.failures.items() if failure.exitcode < 0}
        if killed:  # and the others were ended by torchrun's SIGTERM
            rank = min(killed, key=lambda rank: (killed[rank].exitcode == -signal.SIGTERM, rank))
            number = -killed[rank].exitcode
            ended = f"process {rank} (process id {killed[rank].pid}) was ended by {signal.Signals(number).name}"
            print(f"error: {ended}{AFTER_LOSS}", file=sys.stderr)
            return 128 + number
        return error.get_first_failure()[1].exitcode
    except SignalException as error:
        return 128 + error.sigval
    except (RuntimeError, OSError, ValueError, RendezvousError) as error:
        print(f"error: the processes cannot be started: {reason(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
