"""A look at a corpus before hours of training: what would be refused, what is suspicious, and what it is like."""
