"""Speech synthesis: voices that speak texts, vocoders, copy synthesis, and their measuring and acceleration."""

from common.synthesis.captions import SUBTITLES, subtitles
from common.synthesis.command import speak_into_folder, write_stream
from common.synthesis.companions import companions_of
from common.synthesis.compile import accelerated
from common.synthesis.controls import MAX_FRAMES, Controls, MelOutput
from common.synthesis.copy_synthesis import load_mels_or_recordings, with_frame_pitch
from common.synthesis.cuda_graphs import CudaGraphRecorder
from common.synthesis.loading import check_ema, contract_of, load_vocoder, load_voice
from common.synthesis.measurements import MANY_BATCHES, BatchTimes, Measurements
from common.synthesis.output_folder import OutputFolder
from common.synthesis.phrases import Phrase, read_phrases
from common.synthesis.pictures import draw_speech
from common.synthesis.shipped import shipped_vocoder, with_shipped
from common.synthesis.speech import Speech, SpokenUtterance, SpokenWord
from common.synthesis.synthesizer import Synthesizer, speak_all
from common.synthesis.utterances import SynthesisInput, SynthesisResult, plan_batches
from common.synthesis.vocoder import ACCEPTABLE_DIFFERENCES, AudioContract, GriffinLimVocoder, Vocoder, VocoderSettings
from common.synthesis.voice import Voice
