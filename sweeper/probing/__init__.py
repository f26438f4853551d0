"""Times all-reduces on the host under the settings of NCCL that a space searches, without a server."""
