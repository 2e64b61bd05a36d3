"""Which tags for the words of a sentence, told together: a CRF over the five tags of each type.

The tags of the task are IOB2. Within, each is two, for the last word of an entity and for one that goes on: B and U, I
and L of the scheme BIOUL, in which Peters et al. (arXiv 1802.05365) tag CoNLL-2003. What cannot follow what is then
plain: behind a word that goes on stands an I of the same type, behind all others none.

Letters: B examples, T tokens, W words of the longest example, H hidden width, C tags of the task, S states, R = S + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch, EncoderOutput, LossTerm, LossTerms, Outputs
from bertkit.contracts import Objective
from bertkit.nn.crf import Crf
from bertkit.nn.init import BERT_SIGMA, initialize
from bertkit.nn.packing import PackedRows, select_tokens
from bertkit.objectives._word_positions import WORD_STARTS, count_hits, find_starts, find_words, number_places, pick

_SURE = 30.0
"""The logit of the tag that was told; that of every other is 0."""


class CrfTagging(Objective):
    """One linear layer and a CRF over the words, each of which is its first token.

    ``forward`` gives ``said`` (B, T, S), what every token says to the states, and ``logits`` (B, T, C), which tell the
    tags of the best sequence as good as surely: a sequence has a probability, and its tags have none of their own.
    They are zero on tokens that do not begin a word.
    """

    label = "crf_tags"
    reads_pooled: ClassVar[bool] = False

    def __init__(self, hidden_size: int, tags: Sequence[str], *, initializer_range: float = BERT_SIGMA) -> None:
        super().__init__()
        goes_on = [number for number, tag in enumerate(tags) if tag != "O"]
        self.num_tags = len(tags)
        self.classifier = nn.Linear(hidden_size, len(tags) + len(goes_on))
        self.crf = Crf(_allow([*tags, *(tags[number] for number in goes_on)], last=len(tags)))
        initialize(self.classifier, initializer_range)
        self._tag_of: Tensor
        self._going_on: Tensor
        self._continues: Tensor
        self.register_buffer("_tag_of", torch.tensor([*range(len(tags)), *goes_on]), persistent=False)
        numbers = torch.arange(len(tags))
        numbers[goes_on] = torch.arange(len(tags), len(tags) + len(goes_on))
        self.register_buffer("_going_on", numbers, persistent=False)
        follows = [[_continues(one, other) for other in tags] for one in tags]
        self.register_buffer("_continues", torch.tensor(follows), persistent=False)

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``said`` (B, T, S) and ``logits`` (B, T, C)."""
        said = self.classifier(states.hidden_states).float()
        host = find_starts(batch.on_host)
        places, there = _find_words(host, said.device)
        tags = self._tag_of[self.crf.decode(pick(said, places), there.to(said.device))]
        told = _SURE * F.one_hot(tags, self.num_tags).float()
        rows, width = host.shape
        flat = select_tokens(told.flatten(0, 1), number_places(there).to(said.device))
        logits = PackedRows(rows, width, number_places(host).to(said.device)).pad(flat)
        return {"said": said, "logits": logits}

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Minus the log-likelihood of every row's sequence, summed; words without a label are passed over."""
        labels, said = batch.labels[self.label], outputs["said"]
        places, there = _find_words(batch.on_host.labels[self.label] != IGNORE, said.device)
        mask = there.to(said.device)
        numbers = self._find_states(labels.gather(1, places).masked_fill(~mask, 0), mask)
        said = pick(said, places)
        total = (self.crf.log_partition(said, mask) - self.crf.score(said, numbers, mask)).sum()
        return {self.label: LossTerm(total, self.counts(batch)[self.label])}

    def metrics(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """``crf_tags_accuracy``: words whose tag in the best sequence is the label's."""
        right = count_hits(outputs["logits"], batch.labels[self.label])
        return {f"{self.label}_accuracy": LossTerm(right, self.counts(batch)[self.label])}

    def count_macs(self, batch: Batch) -> int:
        """Those of the linear layer; a chain adds up."""
        return batch.num_tokens * self.classifier.weight.numel()

    def _find_states(self, tags: Int[Tensor, "B W"], mask: Bool[Tensor, "B W"]) -> Int[Tensor, "B W"]:
        """Which of its two states each tag is in: the next one tells."""
        goes_on = F.pad(self._continues[tags[:, :-1], tags[:, 1:]] & mask[:, 1:], (0, 1))
        return torch.where(goes_on, self._going_on[tags], tags)


def _find_words(starts: Bool[Tensor, "B T"], device: torch.device) -> tuple[Int[Tensor, "B W"], Bool[Tensor, "B W"]]:
    """Where each row's words begin, on the device, and which there are, on the host; a row may have none."""
    places, there = find_words(starts)
    return places.to(device, non_blocking=True), there & starts.any(dim=1, keepdim=True)


def _continues(tag: str, following: str) -> bool:
    """Whether ``following`` goes on with the entity of ``tag``."""
    return tag != "O" and following == f"I{tag[1:]}"


def _allow(tags: Sequence[str], *, last: int) -> Bool[Tensor, "R R"]:
    """What may follow what, the beginning and the end behind the states; those from ``last`` on go on."""
    ends = "O"  # neither begins nor ends inside of an entity
    tags = [*tags, ends]
    allowed = torch.zeros(len(tags), len(tags), dtype=torch.bool)
    for one, tag in enumerate(tags):
        goes_on = last <= one < len(tags) - 1
        for other, following in enumerate(tags):
            allowed[one, other] = _continues(tag, following) if goes_on else not following.startswith("I-")
    return allowed


def tiny(hidden_size: int, batch: Batch) -> tuple[CrfTagging, Batch]:
    """A small instance and ``batch`` with labels for it, some missing: for tests."""
    starts = (batch.input_ids % 3 > 0) & batch.attention_mask
    labels = (batch.input_ids % 5).masked_fill(~starts | (batch.input_ids % 7 == 0), IGNORE)
    head = CrfTagging(hidden_size, ("O", "B-X", "I-X", "B-Y", "I-Y"))
    return head, batch.with_labels(**{CrfTagging.label: labels, WORD_STARTS: starts.long()})
