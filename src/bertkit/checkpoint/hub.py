"""Models on the Hugging Face hub, downloaded when a user asks for one by its name."""

from __future__ import annotations

from pathlib import Path

from bertkit.checkpoint.model_folder import METADATA
from bertkit.checkpoint.weights import INDEX, PICKLED, WEIGHTS
from bertkit.errors import BertkitError, usage_error
from bertkit.optional import load

_FILES = (
    METADATA,
    *("config.json", "vocab.*", "merges.txt", "added_tokens.json", "special_tokens_map.json", "tokenizer*.json"),
    *("modules.json", "1_Pooling/config.json", "sentence_bert_config.json", "config_sentence_transformers.json"),
)
_SAFETENSORS = ("model.safetensors", "model-*.safetensors", INDEX)
_PICKLED = ("pytorch_model*.bin", f"{PICKLED}.index.json")


def download(name: str) -> Path:
    """The folder with a copy of the model ``name``, in the cache of huggingface_hub; only what bertkit reads of it.

    torch's pickle is downloaded only if there are no safetensors. A model that is in the cache needs no network.
    """
    hub = load("huggingface_hub")  # comes with tokenizers
    try:
        folder = Path(hub.snapshot_download(name, allow_patterns=[*_FILES, *_SAFETENSORS]))
        if not any((folder / file).exists() for file in (WEIGHTS, INDEX)):
            folder = Path(hub.snapshot_download(name, allow_patterns=[*_FILES, *_PICKLED]))
        return folder
    except hub.errors.RepositoryNotFoundError as error:
        raise usage_error(
            f"there is no {name} here, and the hub has no such model, or not for you: set HF_TOKEN for a private one."
        ) from error
    except (hub.errors.HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise BertkitError(
            f"there is no {name} here, and it cannot be downloaded: {reason}. Where there is a network: "
            f"hf download {name} --local-dir {name.rpartition('/')[2]}, and name the folder."
        ) from error
