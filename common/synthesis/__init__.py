"""Speech synthesis: controls, voices, vocoders, copy synthesis, and their measuring and acceleration."""

from common.synthesis.compile import accelerated
from common.synthesis.controls import Controls, MelOutput
from common.synthesis.copy_synthesis import load_mels_or_recordings
from common.synthesis.cuda_graphs import CudaGraphRecorder
from common.synthesis.measurements import MANY_BATCHES, BatchTimes, Measurements
from common.synthesis.phrases import Phrase, read_phrases
from common.synthesis.pictures import draw_result
from common.synthesis.synthesizer import (
    OutputFolder,
    SynthesisInput,
    SynthesisResult,
    Synthesizer,
    plan_batches,
    speak_all,
)
from common.synthesis.vocoder import ACCEPTABLE_DIFFERENCES, AudioContract, GriffinLimVocoder, Vocoder, VocoderSettings
from common.synthesis.voice import Voice, check_ema, contract_of, load_vocoder, load_voice
