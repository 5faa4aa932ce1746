"""Reading and writing sound, mel-spectrograms, pitch and its statistics, Griffin-Lim, and the denoiser."""
