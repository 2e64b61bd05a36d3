"""Every system that the paper compares, as a model folder to fine-tune and the settings it is fine-tuned with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bertkit.errors import did_you_mean, usage_error
from bertkit.finetuning.defaults import FinetuneProfile
from bertkit.finetuning.word_models import build_word_model
from bertkit.pretraining.run import pretrain, resume
from bertkit.report.progress import Progress
from bertkit.reproduction.corpora import Corpora
from bertkit.reproduction.plan import PlannedPretraining, plan_pretraining
from bertkit.reproduction.pretrainings import Pretraining, Settings, list_pretrainings, match_flop, match_parameters
from bertkit.scheduling import Unit
from bertkit.storage.atomic import read_json

PRETRAINING = "pretraining-"
"""Before the name of a network, the name of the work."""

CASED = "-cased"
"""Behind the name of a contender: the same with a vocabulary that keeps capitals, for named entities."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """``model`` is the folder that ``work`` leaves; ``pretraining`` the run that its cost is read from, of which it has
    taken a ``share``, up to a ``step``.
    """

    name: str
    work: Unit
    model: Path
    pretraining: Path | None = None
    profile: FinetuneProfile = "bert"
    settings: Settings = field(default_factory=dict)
    step: int | None = None
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Rival:
    """A network that is put together of word vectors, or ELMo, or both; ``widths`` are fields of it as published."""

    encoder: FinetuneProfile
    widths: Mapping[str, int]
    elmo: bool = False
    vectors: bool = False


_RIVALS: Mapping[str, Rival] = {
    "bilstm-elmo-attn": Rival(encoder="bilstm_attention", widths={"width": 1500, "hidden_size": 512}, elmo=True),
    "esim-glove": Rival(encoder="esim", widths={"hidden_size": 300}, vectors=True),
    "esim-elmo": Rival(encoder="esim", widths={"hidden_size": 300}, elmo=True),
    "bidaf": Rival(encoder="bidaf", widths={"width": 100}, vectors=True),
    "bidaf-elmo": Rival(encoder="bidaf", widths={"width": 100}, vectors=True, elmo=True),
    "elmo-crf": Rival(encoder="tagger", widths={"hidden_size": 200}, vectors=True, elmo=True),
}


class Systems:
    """All of them at one scale, on one corpus."""

    def __init__(self, corpora: Corpora) -> None:
        self._scale = corpora.scale
        self._corpora = corpora
        self._known = list_pretrainings(corpora.scale)

    def find(self, name: str) -> Contender:
        """The contender of this name.

        ``ltr+bilstm`` has LSTMs on top, ``ltr@2`` is the second of so many points on its way, ``gpt=flop`` was trained
        for as many operations as BERT-Base, and what stands on an ELMo may have ``=parameters``.
        """
        if name.endswith("+bilstm"):
            found = self.find(name.removesuffix("+bilstm"))
            return replace(found, name=name, settings={**found.settings, "lstm_layers": 2})
        base, _, match = name.partition("=")
        if base in _RIVALS:
            return self._assemble(name, _RIVALS[base], f"elmo={match}" if match else "elmo")
        model, _, point = name.partition("@")
        if model.partition("=")[0] not in self._known:
            raise usage_error(f'no contender named "{model}".{did_you_mean(model, [*self._known, *_RIVALS])}')
        return self._pretrained(name, model, int(point or self._scale.snapshots))

    def plan(self, pretraining: str) -> PlannedPretraining:
        """What a pre-training would cost, with vocabularies of the size that is asked for."""
        base, _, match = pretraining.partition("=")
        run, bert = (self._known[name].build_unprepared() for name in (base, "bert-base"))
        if match == "parameters":
            run = match_parameters(run, bert)
        planned = plan_pretraining(pretraining, run)
        if match != "flop":
            return planned
        steps = max(1, round(planned.steps * plan_pretraining("bert-base", bert).flop / planned.flop))
        return plan_pretraining(pretraining, replace(run, steps=steps))

    def has(self, name: str) -> bool:
        """Whether there is such a pre-training."""
        return name in self._known

    def describe(self, name: str, contender: str) -> str:
        """The name of a row, with the size that its network has here where that is not the paper's."""
        if not name.startswith("L=") or self._scale.profile == "paper":
            return name
        return f"{name} (here {self._known[contender].size})"

    def _pretrained(self, name: str, model: str, point: int) -> Contender:
        run = self._folder(model)
        plan = self._known[model.partition("=")[0]]
        steps, snapshots = self._scale.steps, self._scale.snapshots
        step = -(-point * steps // snapshots)
        return Contender(
            name=name,
            work=self._pretrain(model, plan),
            model=run / "model" if step == steps else run / "models" / f"step-{step:08}",
            pretraining=run,
            profile=plan.profile,
            step=step,
            share=step / steps,
        )

    def _pretrain(self, name: str, plan: Pretraining) -> Unit:
        base, _, match = name.partition("=")
        needs = [self._corpora.data(plan.vocabulary)]
        if match == "flop":
            needs += [self._pretrain(each, self._known[each]) for each in ("bert-base", base)]
        elif match == "parameters":
            needs += [self._corpora.data(self._known["bert-base"].vocabulary)]
        output = self._folder(name)
        return Unit(
            name=f"{PRETRAINING}{name}",
            make=lambda progress: self._run(name, plan, progress),
            is_done=lambda: has_ended(output),
            needs=needs,
            shared=True,
        )

    def _run(self, name: str, plan: Pretraining, progress: Progress) -> None:
        base, _, match = name.partition("=")
        output = self._folder(name)
        if (output / "run.json").exists():
            resume(output, progress)
            return
        run = plan.build(self._corpora.folder_of_data(plan.vocabulary), output)
        if match == "flop":
            run = match_flop(run, self._folder(base), self._folder("bert-base"))
        elif match == "parameters":
            bert = self._known["bert-base"]
            run = match_parameters(run, bert.build(self._corpora.folder_of_data(bert.vocabulary), output))
        pretrain(run, progress)

    def _assemble(self, name: str, rival: Rival, elmo: str) -> Contender:
        scale, output = self._scale, self._corpora.output / "assembled" / name
        needs = [self._pretrain(elmo, self._known["elmo"])] if rival.elmo else [self._corpora.data("words")]
        if rival.vectors:
            needs.append(self._corpora.vectors)
        changes = {field: max(4, 2 * round(scale.rival_share * width / 2)) for field, width in rival.widths.items()}

        def make(progress: Progress) -> None:
            build_word_model(
                rival.encoder,
                output,
                elmo=self._folder(elmo) if rival.elmo else None,
                vectors=self._corpora.file_of_vectors if rival.vectors else None,
                words=self._corpora.words(),
                settings=changes,
            )

        ours = {"optimizer.lr": scale.rival_lr, "epochs": scale.rival_epochs}
        return Contender(
            name=name,
            work=Unit(name=f"assembled-{name}", make=make, is_done=output.exists, needs=needs),
            model=output,
            pretraining=self._folder(elmo) if rival.elmo else None,
            profile=rival.encoder,
            settings={} if scale.profile == "paper" else ours,
        )

    def _folder(self, pretraining: str) -> Path:
        return self._corpora.output / "pretraining" / pretraining


def has_ended(run: Path) -> bool:
    """Whether a pre-training has come to its end."""
    return (run / "run.json").exists() and read_json(run / "run.json")["ended"] == "done"
