"""Speech synthesis: voices that speak texts, vocoders, copy synthesis, and their measuring and acceleration."""
