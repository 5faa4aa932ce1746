"""Readers of JSON, YAML and files of torch.save, whose memory and time the file's size bounds."""
