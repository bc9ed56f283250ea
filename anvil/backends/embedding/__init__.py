"""Embedding providers: text to vectors, on this machine, by OpenAI, or on a Ray cluster."""
