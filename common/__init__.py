"""What more than one model needs: audio, text, training engine, checkpoints and logs."""

import sys
from pathlib import Path

from common.signals import end_at_once_while_importing

try:
    Path.cwd()
except FileNotFoundError:  # PyTorch could not be loaded, and would say so in the words of its libraries
    sys.exit("error: the current folder has been removed; go to one that is there")
end_at_once_while_importing()
