"""Network parts that several models use: layers, weight norm, discriminators, CTC, and measures of an alignment."""
