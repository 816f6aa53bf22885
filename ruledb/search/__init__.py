"""Enumeration of candidates by compiled kernels, and their look-up by fingerprint."""
