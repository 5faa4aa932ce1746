"""What more than one model needs: audio, text, training engine, checkpoints and logs."""

from common.signals import end_at_once_while_importing

end_at_once_while_importing()
