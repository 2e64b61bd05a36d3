"""What encoders share: base networks, configuration checks, what a module states about its encoder, and look-ups."""

from bertkit.encoder_types.architectures import configure_architecture, find_architecture, name_architecture
from bertkit.encoder_types.settings import configure, context_of
from bertkit.encoder_types.spec import EncoderSpec, HuggingFaceSpec, PretrainingDefaults
from bertkit.encoder_types.transformer import PooledTransformer, Transformer
from bertkit.encoder_types.words import WordEncoder, WordReaderConfig

__all__ = [
    "EncoderSpec",
    "HuggingFaceSpec",
    "PooledTransformer",
    "PretrainingDefaults",
    "Transformer",
    "WordEncoder",
    "WordReaderConfig",
    "configure",
    "configure_architecture",
    "context_of",
    "find_architecture",
    "name_architecture",
]
