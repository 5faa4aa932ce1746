"""Jasper: speech to text by convolutions and connectionist temporal classification (arXiv:1904.03288)."""
