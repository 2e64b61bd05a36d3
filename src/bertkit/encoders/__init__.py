"""The networks, one file each: config, module, and how Hugging Face spells them."""

from bertkit.encoders._foreign import Foreign
from bertkit.encoders._settings import AskedWords, EncoderConfig, configure
from bertkit.encoders._shelf import configure_architecture, find_architecture, name_architecture
from bertkit.encoders._transformer import PooledTransformer, Transformer
from bertkit.encoders._words import WordEncoder, WordReaderConfig

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
