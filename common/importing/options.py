"""Options of importing recordings."""

from dataclasses import dataclass

from common.options import option


@dataclass(frozen=True)
class ImportOptions:
    """What the clips of the new corpus are like."""

    sampling_rate: int = option(22050, "of the clips, Hz", least=8000, most=192000)
    loudness: float = option(-23.0, "of each clip by EBU R128, LUFS; less where its peak would pass -1 dBFS", most=-5)
    silence: float = option(0.15, "seconds of silence to keep at both ends", least=0, most=10)
    speakers: str = option(
        "auto",
        "who speaks: auto: by the transcripts, else by the folder that a clip's name begins with (p225/p225_001); "
        "folders: by the first folder that tells recordings apart; none: one speaker",
        choices=("auto", "folders", "none"),
    )
    num_workers: int | None = option(None, "processes (default: one for each core)", least=1, most=1024)

    @property
    def of_clips(self) -> str:
        """The settings that a clip depends on, by which an earlier run's is kept."""
        return f"{self.sampling_rate} Hz, {self.loudness:g} LUFS, {self.silence:g} s"
