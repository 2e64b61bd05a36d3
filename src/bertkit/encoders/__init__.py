"""The networks, one file each: config, module, and how Hugging Face spells them."""

from bertkit.encoders._foreign import Foreign
from bertkit.encoders._transformer import PooledTransformer

__all__ = ["Foreign", "PooledTransformer"]
