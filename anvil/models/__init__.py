"""Dataclasses that travel between floors."""
