"""Jasper's loss: connectionist temporal classification, with word and character error rates in validation."""

import torch.nn.functional as F
from torch import Tensor

from common.config import AudioConfig
from common.recognition.recognizer import error_counts
from common.training.objective import N_EXAMPLES, Example, LogStyle, Networks, Objective, Phase, Term
from jasper.arg_parser import TrainingOptions
from jasper.augmentation import Augmentation
from jasper.data_function import JasperBatch
from jasper.features import JasperFeatures
from jasper.model import Jasper, JasperOutput
from jasper.text import decode


class JasperObjective(Objective):
    """The CTC loss, summed over an utterance and averaged over utterances, as published; error rates in percent.

    Batch norm's statistics are per process and micro-batch.
    """

    phases = (Phase("jasper", trains=("jasper",)),)
    log_style = LogStyle({"wer": "WER %", "cer": "CER %"}, shows_speed=True)

    def __init__(self, augmentation: Augmentation) -> None:
        """``augmentation`` applies to training batches."""
        self._augmentation = augmentation

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        return {"ctc_loss": 1.0}

    def counts(self, phase: str, batch: JasperBatch) -> dict[str, Tensor]:
        return {"ctc_loss": batch.n_utterances}

    def numerators(self, phase: str, networks: Networks, batch: JasperBatch) -> dict[str, Tensor]:
        network, _, out = self._forward(networks, batch)
        return {"ctc_loss": transcript_losses(out, batch, blank=network.config.blank).sum()}

    def evaluate(self, networks: Networks, batch: JasperBatch) -> dict[str, Term]:
        network, _, out = self._forward(networks, batch)
        loss = transcript_losses(out, batch, blank=network.config.blank).sum()
        errors = error_counts(_references(network, batch), network.decode(out))
        return {
            "ctc_loss": Term(loss, self.counts("jasper", batch)["ctc_loss"]),
            "wer": Term(loss.new_full((), 100.0 * errors.word_errors), loss.new_full((), errors.n_words)),
            "cer": Term(loss.new_full((), 100.0 * errors.char_errors), loss.new_full((), errors.n_chars)),
        }

    def examples(self, networks: Networks, batch: JasperBatch) -> list[Example]:
        network, inputs, out = self._forward(networks, batch)
        recognized = network.decode(out)
        examples = []
        for index, text in enumerate(_references(network, batch)[:N_EXAMPLES]):
            mels = {"features": inputs.features[index, :, : int(inputs.lengths[index])].cpu()}
            audio = {"recorded": batch.waves[index, : int(batch.wave_lengths[index])].cpu()}
            texts = {"reference": text, "recognized": recognized[index]}
            examples.append(Example(batch.names[index], mels, audio=audio, text=text, texts=texts))
        return examples

    def _forward(self, networks: Networks, batch: JasperBatch) -> tuple[Jasper, JasperFeatures, JasperOutput]:
        network = networks["jasper"]
        inputs = self.features(network, batch)
        return network, inputs, network(inputs.features, inputs.lengths)

    def features(self, network: Jasper, batch: JasperBatch) -> JasperFeatures:
        """Compute the network's input, with masks if the batch has draws."""
        inputs = network.features(batch.waves, batch.wave_lengths)
        if batch.draws is None:
            return inputs
        return JasperFeatures(self._augmentation.masked(inputs.features, inputs.lengths, batch.draws), inputs.lengths)


def transcript_losses(out: JasperOutput, batch: JasperBatch, *, blank: int) -> Tensor:
    """Return each transcript's negative log-likelihood (B,) float32; infinite if it's too long for its frames.

    Source: Graves et al. (2006), section 4.1. Computed in float64: float32 gradients are wrong in the third digit.
    """
    log_probs = out.log_probs.double().transpose(0, 1)
    losses = F.ctc_loss(log_probs, batch.tokens, out.lengths, batch.token_lengths, blank=blank, reduction="none")
    return losses.to(out.log_probs.dtype)


def build_objective(options: TrainingOptions, audio: AudioConfig) -> JasperObjective:
    """Build the objective with the augmentation in --model-config."""
    return JasperObjective(options.settings.input_train.filterbank_features)


def _references(network: Jasper, batch: JasperBatch) -> list[str]:
    lengths = batch.token_lengths.tolist()
    return [decode(ids[:length], network.config.labels) for ids, length in zip(batch.tokens.tolist(), lengths)]
