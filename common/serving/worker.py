"""The thread that runs the networks for all requests.

Waiting texts become mels in batches of similar length. Mels become sound piece by piece, one piece of each request in
turn, so that a long text doesn't hold up short ones. Only the oldest requests, at most a batch of them, take turns;
otherwise, all of them would be late. A step of a network is never interrupted: a job that is canceled, because its
client hung up or its deadline passed, ends before the next step.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count, cycle, islice
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from common.recognition.recognizer import Recognizer, Transcription
from common.serving.log import Metrics, RequestRecord
from common.synthesis.utterances import SynthesisInput, SynthesisResult, silences
from common.synthesis.voice import Voice

logger = logging.getLogger("serve")
_AHEAD = 5.0  # s of sound to buffer for a slow client; the worker then serves other requests
_LONGEST_RATIO = 1.5  # of the longest to the shortest utterance in a batch of texts
_LITTLE = 16  # symbols; smaller differences in length don't matter
Result = TypeVar("Result")
AnyJob = TypeVar("AnyJob", bound="Job")
Work = Callable[[Sequence[Any]], None]  # on a batch of jobs
Step = tuple[Work, Sequence[Any]]


class Job(Generic[Result]):
    """Results of one request, passed in order from the worker's thread to the request's coroutine."""

    def __init__(self, record: RequestRecord) -> None:
        """The job is canceled when the request of the ``record`` ends."""
        self.is_over = False  # done, failed or canceled: no work is left
        self.on_change: Callable[[], None] = lambda: None  # called after a result is taken, and by `cancel`
        self.record = record
        record.stop_work = self.cancel
        self._loop = asyncio.get_running_loop()
        self._results: asyncio.Queue[tuple[Result | Exception | None, float]] = asyncio.Queue()
        self._made = self._taken = 0.0  # s of sound

    @property
    def is_full(self) -> bool:
        """Whether the worker has to wait for the client."""
        return self._made - self._taken >= _AHEAD

    def put(self, result: Result | Exception | None, *, seconds: float = 0.0) -> None:
        """Pass on a result with ``seconds`` of sound, or the error that ends the job; None: done."""
        self.is_over = self.is_over or result is None or isinstance(result, Exception)
        self._made += seconds
        with suppress(RuntimeError):  # the event loop has ended with the server, so nobody is waiting
            self._loop.call_soon_threadsafe(self._results.put_nowait, (result, seconds))

    def cancel(self) -> None:
        """Drop the remaining work; has no effect on a finished job."""
        self.is_over = True
        self.on_change()

    async def take(self) -> Result | None:
        """Return the next result, or None after the last one; raises the error that ended the job."""
        result, seconds = await self._results.get()
        if isinstance(result, Exception):
            raise result
        if seconds:
            self._taken += seconds
            self.record.sound = self._taken
        self.on_change()
        return result


class SpeechJob(Job[Tensor | SynthesisResult]):
    """A text to speak. Its results for each utterance are the pieces of the wave (T_i,), then the utterance itself."""

    def __init__(self, voice: Voice, inputs: Sequence[SynthesisInput], record: RequestRecord) -> None:
        super().__init__(record)
        self.voice = voice
        self.inputs = deque(inputs)  # waiting to become mels
        self.n_symbols = sum(item.length for item in inputs)
        self.mel: SynthesisResult | None = None  # being turned into sound
        self.pieces: Iterator[Tensor] = iter(())
        self.n_left = 0  # samples still to be made
        self.turn = 0  # number of its last piece, counted over all jobs

    @property
    def waits(self) -> bool:
        """Whether its next utterance is ready to become a mel."""
        return bool(self.inputs) and self.mel is None and not self.is_full

    def fits(self, other: "SpeechJob") -> bool:
        """Return whether the next utterances of both jobs can share a batch."""
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


class Worker(threading.Thread):
    """Runs jobs in its own thread, from `start` to `stop`."""

    def __init__(self, recognizer: Recognizer | None, *, batch_size: int, metrics: Metrics) -> None:
        super().__init__(name="networks", daemon=True)
        self._recognizer = recognizer
        self._batch_size = batch_size
        self._metrics = metrics
        self._jobs: list[Job] = []  # in order of arrival
        self._changed = threading.Condition()
        self._is_stopping = False
        self._kinds = cycle((self._next_mels, self._next_piece, self._next_transcripts))
        self._turns = count(1)

    def stop(self) -> None:
        """Stop after the current step; unfinished jobs stay unfinished."""
        self._is_stopping = True
        self._wake()
        self.join()

    def add(self, job: AnyJob) -> AnyJob:
        """Add a job to the queue, and return it."""
        job.on_change = self._wake
        with self._changed:
            self._jobs.append(job)
            self._changed.notify()
        return job

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def run(self) -> None:
        """Do the jobs' steps until `stop` is called."""
        while not self._is_stopping:
            with self._changed:
                self._jobs = [job for job in self._jobs if not job.is_over]
                # Kinds of work alternate.
                steps: Iterator[Step | None] = (find() for find in islice(self._kinds, 3))
                found = next(filter(None, steps), None)
                if found is None and not self._is_stopping:
                    self._changed.wait()
            if found is not None:
                self._do(*found)

    def _do(self, work: Work, jobs: Sequence[Job]) -> None:
        """Do the work of several jobs; if it fails, try each alone, since one may be at fault."""
        try:
            work(jobs)
        except Exception as error:  # one request's error must not fail the others
            if len(jobs) == 1:
                jobs[0].put(error)
                return
            if isinstance(error, torch.OutOfMemoryError):
                logger.warning("warning: out of memory for %d requests at once; use a smaller --batch-size", len(jobs))
            for job in jobs:
                self._do(work, [job])

    def _speaking(self) -> list[SpeechJob]:
        """Return the speech jobs whose buffers aren't full."""
        return [job for job in self._jobs if isinstance(job, SpeechJob) and not job.is_full]

    def _next_mels(self) -> Step | None:
        """Batch the next utterance of the first request without a mel with others of similar length."""
        speaking = self._speaking()
        first = next((job for job in speaking[: self._batch_size] if job.waits), None)
        if first is None:
            return None
        alike = (job for job in speaking if job.waits and job is not first and job.fits(first))
        return self._generate, [first, *islice(alike, self._batch_size - 1)]

    def _next_piece(self) -> Step | None:
        """Make a piece for the request, among the oldest ones, that has waited longest for its next piece."""
        ready = [job for job in self._speaking()[: self._batch_size] if job.mel is not None]
        return (self._make_piece, [min(ready, key=lambda job: job.turn)]) if ready else None

    def _next_transcripts(self) -> Step | None:
        jobs = [job for job in self._jobs if isinstance(job, TranscriptionJob)][: self._batch_size]
        return (self._transcribe, jobs) if jobs else None

    def _generate(self, jobs: Sequence[SpeechJob]) -> None:
        mels = jobs[0].voice.synthesizer.generate([job.inputs[0] for job in jobs])
        self._metrics.batch.labels("speech").observe(len(jobs))
        for job, mel in zip(jobs, mels):
            job.inputs.popleft()
            job.mel, job.pieces = mel, job.voice.synthesizer.pieces(mel)
            audio = job.voice.audio
            job.n_left = (mel.mel.size(1) + sum(silences(mel.item, audio))) * audio.hop_length
            if mel.is_cut:
                logger.warning("%s", mel.cut_warning)

    def _make_piece(self, jobs: Sequence[SpeechJob]) -> None:
        (job,) = jobs
        job.turn = next(self._turns)
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
