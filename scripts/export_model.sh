#!/usr/bin/env bash
# Writes the network of a checkpoint as ONNX, TorchScript or safetensors, and compares the file with PyTorch.
#   bash scripts/export_model.sh output/FastPitch_checkpoint_1500.pt  # makes output/FastPitch_checkpoint_1500.onnx
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m speech_toolkit export "$@"
