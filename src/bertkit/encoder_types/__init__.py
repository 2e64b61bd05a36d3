"""What encoders share: base networks, configuration checks, and how Hugging Face names their parts."""

from bertkit.encoder_types.architectures import configure_architecture, find_architecture, name_architecture
from bertkit.encoder_types.settings import EncoderConfig, PretrainingObjective, configure
from bertkit.encoder_types.spec import HuggingFaceSpec
from bertkit.encoder_types.transformer import PooledTransformer, Transformer
from bertkit.encoder_types.words import WordEncoder, WordReaderConfig

__all__ = [
    "EncoderConfig",
    "HuggingFaceSpec",
    "PooledTransformer",
    "PretrainingObjective",
    "Transformer",
    "WordEncoder",
    "WordReaderConfig",
    "configure",
    "configure_architecture",
    "find_architecture",
    "name_architecture",
]
