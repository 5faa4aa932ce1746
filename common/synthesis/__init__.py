"""Speech synthesis: voices, vocoders, copy synthesis, streaming and CUDA graphs."""
