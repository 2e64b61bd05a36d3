"""From text to pieces: tokenizers with their training, and sentences. One file a kind."""
