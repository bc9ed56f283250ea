"""Tests of documentation: the suite as TOML, how a question turned out, and which edited page is to blame"""
