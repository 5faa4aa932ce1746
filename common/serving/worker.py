"""The one thread that runs the networks, for all requests in turn.

Texts that wait become mels together, in batches of similar length. Mels become sound piece by piece, a piece of each
request in turn, so that a long text does not hold up short ones; but of a batch's number of requests alone, the first
that came, or too many would all be late together. A step of a network is never interrupted: a job that is canceled,
because its client hung up or its time is over, ends before the next one.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count, cycle, islice
from typing import Generic, TypeVar

import torch
from torch import Tensor

from common.recognition.recognizer import Recognizer, Transcription
from common.serving.log import RequestRecord
from common.serving.metrics import Metrics
from common.synthesis.utterances import SynthesisInput, SynthesisResult, silences
from common.synthesis.voice import Voice

logger = logging.getLogger("serve")
_AHEAD = 5.0  # s of sound that may wait for a slow client; then the worker serves other requests
_LONGEST_RATIO = 1.5  # of the longest to the shortest utterance in a batch of texts
_LITTLE = 16  # symbols; smaller differences in length don't matter
Step = Callable[[], None]
Result = TypeVar("Result")


class Job(Generic[Result]):
    """Results of one request's work, in order, from the worker's thread to the coroutine that made the job."""

    def __init__(self, record: RequestRecord) -> None:
        """The job is canceled when the request of the ``record`` ends."""
        self.is_over = False  # done, failed or canceled: there is no more work to do
        self.on_change: Callable[[], None] = lambda: None  # called when results were taken, and by `cancel`
        self.record = record
        record.stop_work = self.cancel
        self._loop = asyncio.get_running_loop()
        self._results: asyncio.Queue[tuple[Result | Exception | None, float]] = asyncio.Queue()
        self._made = self._taken = 0.0  # s of sound

    @property
    def is_full(self) -> bool:
        """Whether the worker has to wait for the client to take what there is."""
        return self._made - self._taken >= _AHEAD

    def put(self, result: Result | Exception | None, *, seconds: float = 0.0) -> None:
        """Hand over a result, of so much sound, or the error that ends the job; None: all is done."""
        if result is None or isinstance(result, Exception):
            self.is_over = True
        self._made += seconds
        with suppress(RuntimeError):  # the event loop has ended, and the server with it: nobody waits
            self._loop.call_soon_threadsafe(self._results.put_nowait, (result, seconds))

    def cancel(self) -> None:
        """Let the worker drop what is left to do; without effect on a job that is over."""
        self.is_over = True
        self.on_change()

    async def take(self) -> Result | None:
        """The next result, or None after the last one; raises what the work failed with."""
        result, seconds = await self._results.get()
        if isinstance(result, Exception):
            raise result
        if seconds:
            self._taken += seconds
            self.record.sound = self._taken
        self.on_change()
        return result


class SpeechJob(Job[Tensor | SynthesisResult]):
    """A text to speak. Its results are, for each utterance, the pieces of its wave (T_i,) and then what it was made of."""

    def __init__(self, voice: Voice, inputs: Sequence[SynthesisInput], record: RequestRecord) -> None:
        super().__init__(record)
        self.voice = voice
        self.inputs = deque(inputs)  # that wait to become mels
        self.n_symbols = sum(item.length for item in inputs)
        self.mel: SynthesisResult | None = None  # that is made sound of
        self.pieces: Iterator[Tensor] = iter(())
        self.n_left = 0  # samples of them that are not made yet
        self.turn = 0  # when the last piece was made: a number that grows

    @property
    def waits(self) -> bool:
        """Whether its next utterance is to become a mel."""
        return bool(self.inputs) and self.mel is None and not self.is_full

    def fits(self, other: "SpeechJob") -> bool:
        """Whether the next utterances of both may be generated at once."""
        mine, its = self.inputs[0], other.inputs[0]
        short, long = sorted((mine.length, its.length))
        alike = long <= max(_LONGEST_RATIO * short, short + _LITTLE)
        seeds = {job.voice.synthesizer.controls.seed for job in (self, other)}
        return alike and mine.given == its.given and len(seeds) == 1


class TranscriptionJob(Job[Transcription]):
    """A recording to transcribe: wave (T,) float32 at the recognizer's rate."""

    def __init__(self, wave: Tensor, record: RequestRecord) -> None:
        super().__init__(record)
        self.wave = wave


class Worker:
    """Runs jobs in its own thread, from `start` to `stop`."""

    def __init__(self, recognizer: Recognizer | None, *, batch_size: int, metrics: Metrics) -> None:
        self._recognizer = recognizer
        self._batch_size = batch_size
        self._metrics = metrics
        self._speaking: deque[SpeechJob] = deque()
        self._transcribing: deque[TranscriptionJob] = deque()
        self._changed = threading.Condition()
        self._stopped = False
        self._kinds = cycle((self._next_mels, self._next_piece, self._next_transcripts))
        self._turns = count(1)
        self._thread = threading.Thread(target=self._run, name="networks", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether jobs are done."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Stop after the current step; unfinished jobs stay unfinished."""
        self._stopped = True
        self._wake()
        self._thread.join()

    def add(self, job: SpeechJob | TranscriptionJob) -> None:
        """Add a job to the queue."""
        job.on_change = self._wake
        with self._changed:
            (self._speaking if isinstance(job, SpeechJob) else self._transcribing).append(job)  # type: ignore[arg-type]
        self._wake()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._stopped and (step := self._next_step()) is None:
                    self._changed.wait()
                if self._stopped or step is None:
                    return
            step()

    def _next_step(self) -> Step | None:
        """The next step of work, alternating between kinds; None if there is nothing to do."""
        self._speaking = deque(job for job in self._speaking if not job.is_over)
        self._transcribing = deque(job for job in self._transcribing if not job.is_over)
        return next(filter(None, (find() for find in islice(self._kinds, 3))), None)

    def _first(self) -> Iterator[SpeechJob]:
        """The oldest requests, up to a batch, except those whose clients have sound waiting."""
        return islice((job for job in self._speaking if not job.is_full), self._batch_size)

    def _next_mels(self) -> Step | None:
        """The next utterance of the first request that has none in work, with others' of similar length."""
        first = next((job for job in self._first() if job.waits), None)
        if first is None:
            return None
        alike = (job for job in self._speaking if job.waits and job is not first and job.fits(first))
        return partial(self._together, self._generate, [first, *islice(alike, self._batch_size - 1)])

    def _next_piece(self) -> Step | None:
        """A piece of sound of the request whose last one is longest ago."""
        job = min((job for job in self._first() if job.mel is not None), key=lambda job: job.turn, default=None)
        if job is None:
            return None
        job.turn = next(self._turns)
        return partial(self._together, self._make_piece, [job])

    def _next_transcripts(self) -> Step | None:
        jobs = list(islice(self._transcribing, self._batch_size))
        return partial(self._together, self._transcribe, jobs) if jobs else None

    def _together(self, work: Callable[[Sequence], None], jobs: Sequence[Job]) -> None:
        """Do the work of jobs; where it fails each is tried alone, as it may be the fault of one."""
        try:
            work(jobs)
        except Exception as error:  # one request's error must not fail the others
            if len(jobs) == 1:
                jobs[0].put(error)
                return
            if isinstance(error, torch.OutOfMemoryError):
                logger.warning("warning: no memory for %d requests at once; give a smaller --batch-size", len(jobs))
            for job in jobs:
                self._together(work, [job])

    def _generate(self, jobs: Sequence[SpeechJob]) -> None:
        mels = jobs[0].voice.synthesizer.generate([job.inputs[0] for job in jobs])
        self._metrics.batch.labels("speech").observe(len(jobs))
        for job, mel in zip(jobs, mels):
            job.inputs.popleft()
            job.mel, job.pieces = mel, job.voice.synthesizer.pieces(mel)
            audio = job.voice.audio
            job.n_left = (mel.mel.size(1) + sum(silences(mel.item, audio))) * audio.hop_length
            if mel.failure:
                logger.warning("warning: %s", mel.describe_failure())

    def _make_piece(self, jobs: Sequence[SpeechJob]) -> None:
        (job,) = jobs
        piece = next(job.pieces)
        seconds = len(piece) / job.voice.sampling_rate
        self._metrics.audio.inc(seconds)
        job.put(piece, seconds=seconds)
        job.n_left -= len(piece)
        if job.n_left <= 0:
            job.put(job.mel)
            job.mel = None
            if not job.inputs:
                job.put(None)

    def _transcribe(self, jobs: Sequence[TranscriptionJob]) -> None:
        assert self._recognizer is not None
        found = self._recognizer.transcribe([job.wave for job in jobs], with_log_probs=True)
        self._metrics.batch.labels("transcription").observe(len(jobs))
        for job, one in zip(jobs, found):
            job.put(one)
            job.put(None)
