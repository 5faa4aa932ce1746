"""Network parts that several models use: layers, weight norm, measures of an alignment."""
