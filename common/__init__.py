"""What more than one model needs: audio, text, training engine, checkpoints and logs."""
