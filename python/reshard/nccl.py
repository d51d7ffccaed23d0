"""Ranks of an NCCL communicator, each with a GPU."""
