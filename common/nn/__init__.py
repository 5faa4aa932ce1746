"""Network parts that several models use: layers, masks, weight norm, and measures of an alignment."""
