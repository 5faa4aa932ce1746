class OutputFolder:
    """Files of synthesized phrases: the sound as ``<output>``, ``mels/<output>.pt`` when mels are kept, and
    ``<output>.png``, where ``draw`` writes a picture.
    """

    def __init__(
        self,
        folder: Path,
        *,
        audio: AudioConfig,
        fade_out_frames: int,
        save_mels: bool,
        draw: Callable[[SynthesisResult, Path], None] | None = None,
    ) -> None:
        self.n_written = 0  # phrases
        self._folder = folder
        self._audio = audio
        self._fade_out = fade_out_frames * audio.hop_length  # samples
        self._save_mels = save_mels
        self._draw = draw
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if save_mels:
                write_json(folder / "mels" / "audio.json", to_plain(audio))
        except OSError as error:
            raise InputError(f"{folder}: cannot write there ({error.strerror}); choose another --output") from error

    def write(self, result: SynthesisResult) -> str:
        """Write one phrase's files, each completely or not at all; returns a line that says so.

        A wave that goes beyond full scale is scaled down to it, so that nothing clips.
        """
        output = result.phrase.output
        mel_path, picture = self._folder / "mels" / output.with_suffix(".pt"), self._folder / output.with_suffix(".png")
        line = f"{mel_path if self._save_mels else picture}: {result.mel.size(1)} frames"
        try:
            if self._save_mels:
                save_tensor(mel_path, result.mel)
            if result.wave is not None:
                wave = result.wave / max(1.0, float(result.wave.abs().max()))
                wave = fade_out(wave, self._fade_out)
                save_wav(self._folder / output, wave, sampling_rate=self._audio.sampling_rate)
                line = f"{self._folder / output}: {len(wave) / self._audio.sampling_rate:.2f} s"
        except OSError as error:
            raise InputError(f"{self._folder / output}: cannot be written ({error.strerror})") from error
        if self._draw is not None:
            self._draw(result, picture)
        self.n_written += 1
        return line
