"""Network parts that several models share: layers, weight norm, discriminators and alignment."""
