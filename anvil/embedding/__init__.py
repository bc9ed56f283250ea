"""Embedding providers: text to vectors, on this machine or by OpenAI. The bundled model."""
