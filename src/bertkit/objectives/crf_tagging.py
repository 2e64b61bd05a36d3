"""Tags for the words of a sentence, predicted jointly by a CRF with the states of the BIOUL scheme.

The tags of the task are IOB2. The CRF has two states for each tag but O: one for a word that ends its entity, one for a
word after which it continues. For the tag B these are U and B of the scheme BIOUL, in which Peters et al. (arXiv
1802.05365) tag CoNLL-2003; for the tag I they are L and I. After a state that continues only an I of the same type is
allowed; after all others no I.

Letters: B examples, T tokens, W words of the longest example, C tags of the task, S states, R = S + 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.batch import IGNORE, WORD_STARTS, Batch, EncoderOutput, LossTerm, LossTerms, Outputs
from bertkit.nn.crf import Crf
from bertkit.nn.init import initialize
from bertkit.objectives._word_positions import WordTagging, find_starts, find_words, pick, place_words

_PREDICTED_LOGIT = 30.0
"""The logit of the predicted tag; those of all others are 0, so its probability is nearly 1."""


class CrfTagging(WordTagging):
    """One linear layer and a CRF over the words; a word is represented by its first token.

    ``forward`` returns ``emissions`` (B, T, S) and, except in training, ``logits`` (B, T, C), which give nearly all
    probability to the tags of the best sequence, because a CRF has probabilities of sequences and not of single tags.
    Logits are 0 on tokens that do not begin a word.
    """

    label = "crf_tags"

    def __init__(self, hidden_size: int, tags: Sequence[str]) -> None:
        super().__init__()
        continuing = [number for number, tag in enumerate(tags) if tag != "O"]
        self.num_tags = len(tags)
        self.classifier = nn.Linear(hidden_size, len(tags) + len(continuing))
        self.crf = Crf(_allowed_transitions([*tags, *(tags[number] for number in continuing)], num_tags=len(tags)))
        initialize(self.classifier)
        self._tag_of: Tensor
        self._continuing_state: Tensor
        self._continues: Tensor
        self.register_buffer("_tag_of", torch.tensor([*range(len(tags)), *continuing]), persistent=False)
        numbers = torch.arange(len(tags))
        numbers[continuing] = torch.arange(len(tags), len(tags) + len(continuing))
        self.register_buffer("_continuing_state", numbers, persistent=False)
        follows = [[_continues(one, other) for other in tags] for one in tags]
        self.register_buffer("_continues", torch.tensor(follows), persistent=False)

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``emissions`` (B, T, S), and ``logits`` (B, T, C) except in training."""
        emissions = self.classifier(states.apply_head(states.hidden_states)).float()
        if self.training:  # the best sequence takes a step per word, and the loss does not read it
            return {"emissions": emissions}
        starts = find_starts(batch.on_host)
        columns, is_word = find_words(starts, emissions.device)
        tags = self._tag_of[self.crf.decode(pick(emissions, columns), is_word.to(emissions.device))]
        logits = _PREDICTED_LOGIT * F.one_hot(tags, self.num_tags).float()
        return {"emissions": emissions, "logits": place_words(logits, is_word, starts)}

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """The negative log-likelihood of every row's sequence, summed; words without a label are ignored."""
        labels, emissions = batch.labels[self.label], outputs["emissions"]
        columns, is_word = find_words(batch.on_host.labels[self.label] != IGNORE, emissions.device)
        mask = is_word.to(emissions.device)
        states = self._find_states(labels.gather(1, columns).masked_fill(~mask, 0), mask)
        emissions = pick(emissions, columns)
        total = (self.crf.log_partition(emissions, mask) - self.crf.score(emissions, states, mask)).sum()
        return {self.label: LossTerm(total, self.counts(batch)[self.label])}

    def _find_states(self, tags: Int[Tensor, "B W"], mask: Bool[Tensor, "B W"]) -> Int[Tensor, "B W"]:
        """The state of each tag, which depends on whether the next tag continues the entity."""
        continues = F.pad(self._continues[tags[:, :-1], tags[:, 1:]] & mask[:, 1:], (0, 1))
        return torch.where(continues, self._continuing_state[tags], tags)


def _continues(tag: str, following: str) -> bool:
    """Whether ``following`` continues the entity of ``tag``."""
    return tag != "O" and following == f"I{tag[1:]}"


def _allowed_transitions(tags: Sequence[str], *, num_tags: int) -> Bool[Tensor, "R R"]:
    """Allowed transitions between states, given by their tags; states from ``num_tags`` on continue their entity.

    The last row is the beginning of a sentence, the last column its end.
    """
    ends = "O"  # a sentence neither begins nor ends inside an entity
    tags = [*tags, ends]
    allowed = torch.zeros(len(tags), len(tags), dtype=torch.bool)
    for one, tag in enumerate(tags):
        continues = num_tags <= one < len(tags) - 1
        for other, following in enumerate(tags):
            allowed[one, other] = _continues(tag, following) if continues else following[0] != "I"
    return allowed


def tiny(hidden_size: int, batch: Batch) -> tuple[CrfTagging, Batch]:
    """A small instance and ``batch`` with labels for it, some missing, for tests."""
    starts = (batch.input_ids % 3 > 0) & batch.attention_mask
    labels = (batch.input_ids % 5).masked_fill(~starts | (batch.input_ids % 7 == 0), IGNORE)
    head = CrfTagging(hidden_size, ("O", "B-X", "I-X", "B-Y", "I-Y"))
    return head, batch.with_labels(**{CrfTagging.label: labels, WORD_STARTS: starts.long()})
