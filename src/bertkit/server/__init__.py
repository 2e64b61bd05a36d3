"""The HTTP server: models behind the protocols of Hugging Face, OpenAI, TEI, Cohere, Label Studio and the clouds."""
