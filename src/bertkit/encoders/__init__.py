"""The networks, one file each: config, module, and how Hugging Face spells them."""

from bertkit.encoders._foreign import Foreign

__all__ = ["Foreign"]
