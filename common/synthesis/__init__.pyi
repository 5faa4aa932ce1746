"""Speech synthesis: voices that speak texts, vocoders, copy synthesis, and their measuring and acceleration."""

from .cuda_graphs import GraphRecorder as GraphRecorder
from .imitation import imitate as imitate, load_recording as load_recording
from .loading import (
    GRIFFIN_LIM as GRIFFIN_LIM,
    contract_of as contract_of,
    load_vocoder as load_vocoder,
    load_voice as load_voice,
    make_voice as make_voice,
    shipped_vocoder as shipped_vocoder,
    with_shipped as with_shipped,
)
from .options import ACCEPTABLE_DIFFERENCES as ACCEPTABLE_DIFFERENCES
from .output_folder import OutputFolder as OutputFolder
from .phrases import (
    load_mels_or_recordings as load_mels_or_recordings,
    read_phrases as read_phrases,
    with_frame_pitch as with_frame_pitch,
)
from .speech import Speech as Speech, subtitles as subtitles
from .synthesizer import Synthesizer as Synthesizer
from .utterances import (
    Controls as Controls,
    MelOutput as MelOutput,
    Phrase as Phrase,
    SynthesisInput as SynthesisInput,
    SynthesisResult as SynthesisResult,
)
from .vocoder import (
    AudioContract as AudioContract,
    GriffinLimVocoder as GriffinLimVocoder,
    Vocoder as Vocoder,
    VocoderSettings as VocoderSettings,
)
from .voice import Voice as Voice
