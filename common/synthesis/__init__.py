"""Speaking: controls, voice, vocoder, synthesizer, copy synthesis, and the measuring and acceleration of it."""
