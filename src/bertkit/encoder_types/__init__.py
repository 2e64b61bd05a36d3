"""What encoders share: base networks, configuration checks, and how Hugging Face names their parts."""

from bertkit.encoder_types.architectures import configure_architecture, find_architecture, name_architecture
from bertkit.encoder_types.settings import AskedWords, EncoderConfig, configure
from bertkit.encoder_types.spec import Foreign
from bertkit.encoder_types.transformer import PooledTransformer, Transformer
from bertkit.encoder_types.words import WordEncoder, WordReaderConfig

__all__ = [
    "AskedWords",
    "EncoderConfig",
    "Foreign",
    "PooledTransformer",
    "Transformer",
    "WordEncoder",
    "WordReaderConfig",
    "configure",
    "configure_architecture",
    "find_architecture",
    "name_architecture",
]
