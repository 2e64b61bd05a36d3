"""Every system that the paper compares, as a model folder to fine-tune and the settings that it is fine-tuned with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bertkit.finetuning.word_models import build_word_model
from bertkit.options.finetuning import FinetuneProfile
from bertkit.pretraining.run import pretrain, resume
from bertkit.report.progress import Progress
from bertkit.reproduction.corpora import Corpora
from bertkit.reproduction.paper import Match, System
from bertkit.reproduction.pretrainings import Pretraining, Settings, list_pretrainings, match_flop, match_parameters
from bertkit.runs import read_end
from bertkit.scheduling import Unit


@dataclass(frozen=True, kw_only=True)
class SystemModel:
    """The model folder of a system, and how it is made and fine-tuned.

    ``unit`` makes the folder ``model``. The cost is read from the run ``pretraining``; a snapshot has taken only its
    first ``step`` steps, a ``share`` of all. ``settings`` are those of every fine-tuning that differ from the
    ``profile``.
    """

    name: str
    unit: Unit
    model: Path
    pretraining: Path | None = None
    profile: FinetuneProfile = "bert"
    settings: Settings = field(default_factory=dict)
    step: int | None = None
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class WordModel:
    """A network on word vectors, on an ELMo, or on both; ``widths`` are fields of its configuration as published."""

    encoder: FinetuneProfile
    widths: Mapping[str, int]
    elmo: bool = False
    vectors: bool = False


_WORD_MODELS: Mapping[str, WordModel] = {
    "bilstm-elmo-attn": WordModel(encoder="bilstm_attention", widths={"width": 1500, "hidden_size": 512}, elmo=True),
    "esim-glove": WordModel(encoder="esim", widths={"hidden_size": 300}, vectors=True),
    "esim-elmo": WordModel(encoder="esim", widths={"hidden_size": 300}, elmo=True),
    "bidaf": WordModel(encoder="bidaf", widths={"width": 100}, vectors=True),
    "bidaf-elmo": WordModel(encoder="bidaf", widths={"width": 100}, vectors=True, elmo=True),
    "elmo-crf": WordModel(encoder="tagger", widths={"hidden_size": 200}, vectors=True, elmo=True),
}


class Systems:
    """All systems at one scale, on one corpus. Each is planned once."""

    def __init__(self, corpora: Corpora) -> None:
        self._scale = corpora.scale
        self._corpora = corpora
        self._networks = list_pretrainings(corpora.scale)
        self._models: dict[System, SystemModel] = {}
        self._units: dict[str, Unit] = {}
        self.pretrainings: dict[str, Pretraining] = {}
        """The pre-trainings that the systems found so far need, by the name of their unit."""

    def find(self, system: System) -> SystemModel:
        """Where the model of a system is, or will be."""
        if system not in self._models:
            self._models[system] = self._plan(system)
        return self._models[system]

    def network(self, name: str, match: Match | None = None) -> Pretraining:
        """The pre-training of a network."""
        return replace(self._networks[name], match=match)

    def has_cased(self, system: System) -> bool:
        """Whether the system also has a cased version: a BERT has one, unless the vocabulary of the scale is cased."""
        network = self._networks.get(system.network)
        return not self._scale.cased and network is not None and network.tokenizer == "wordpiece"

    def _plan(self, system: System) -> SystemModel:
        if system.network in _WORD_MODELS:
            return self._plan_word_model(system, _WORD_MODELS[system.network])
        pretraining = self.network(system.network, system.match)
        if system.cased:
            pretraining = replace(pretraining, cased=True, tokenizer="wordpiece-cased")
        run = self._folder(pretraining)
        steps, snapshots = self._scale.steps, self._scale.snapshots
        step = -(-(system.snapshot or snapshots) * steps // snapshots)
        is_last = step == steps
        return SystemModel(
            name=(replace(system, snapshot=None) if is_last else system).name,
            unit=self._pretraining_unit(pretraining),
            model=run / "model" if is_last else run / "models" / f"step-{step:08}",
            pretraining=run,
            profile=pretraining.profile,
            settings={"lstm_layers": 2} if system.lstm else {},
            step=step,
            share=step / steps,
        )

    def _pretraining_unit(self, pretraining: Pretraining) -> Unit:
        name = f"pretraining-{pretraining.name}"
        if name in self._units:
            return self._units[name]
        needs = [self._corpora.data(pretraining.tokenizer)]
        bert = self.network("bert-base")
        if pretraining.match == "flop":
            needs += [self._pretraining_unit(each) for each in (bert, replace(pretraining, match=None))]
        elif pretraining.match == "parameters":
            needs += [self._corpora.data(bert.tokenizer)]
        output = self._folder(pretraining)
        self.pretrainings[name] = pretraining
        self._units[name] = Unit(
            name=name,
            make=lambda progress: self._pretrain(pretraining, progress),
            is_done=lambda: read_end(output).is_done,
            failure=lambda: read_end(output).failure,
            needs=needs,
            shared=True,
        )
        return self._units[name]

    def _pretrain(self, pretraining: Pretraining, progress: Progress) -> None:
        output, bert = self._folder(pretraining), self.network("bert-base")
        if (output / "run.json").exists():
            resume(output, progress)
            return
        run = pretraining.build(self._corpora.folder_of_data(pretraining.tokenizer), output)
        if pretraining.match == "flop":
            run = match_flop(run, self._folder(replace(pretraining, match=None)), self._folder(bert))
        elif pretraining.match == "parameters":
            run = match_parameters(run, bert.build(self._corpora.folder_of_data(bert.tokenizer), output))
        pretrain(run, progress)

    def _plan_word_model(self, system: System, model: WordModel) -> SystemModel:
        scale, output = self._scale, self._corpora.output / "word-models" / system.name
        elmo = self.network("elmo", system.match)
        needs = [self._pretraining_unit(elmo)] if model.elmo else [self._corpora.data("words")]
        if model.vectors:
            needs.append(self._corpora.vectors)
        widths = {name: max(4, 2 * round(scale.baseline_share * width / 2)) for name, width in model.widths.items()}

        def make(progress: Progress) -> None:
            build_word_model(
                model.encoder,
                output,
                elmo=self._folder(elmo) if model.elmo else None,
                vectors=self._corpora.file_of_vectors if model.vectors else None,
                words=self._corpora.words(),
                settings=widths,
            )

        settings = {"optimizer.lr": scale.baseline_lr, "epochs": scale.baseline_epochs}
        return SystemModel(
            name=system.name,
            unit=Unit(name=f"word-model-{system.name}", make=make, is_done=output.exists, needs=needs),
            model=output,
            pretraining=self._folder(elmo) if model.elmo else None,
            profile=model.encoder,
            settings={} if scale.profile == "paper" else settings,
        )

    def _folder(self, pretraining: Pretraining) -> Path:
        return self._corpora.output / "pretraining" / pretraining.name
