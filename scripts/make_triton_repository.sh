#!/usr/bin/env bash
# Writes a model repository of Triton Inference Server: a voice, a vocoder, and an ensemble of both, ids to sound.
#   bash scripts/make_triton_repository.sh models --fastpitch FastPitch.onnx --hifigan HiFi-GAN.onnx
#   bash scripts/make_triton_repository.sh models --fastpitch voice.pt --hifigan g_02500000 --device cpu --instances 2
# Checkpoints are exported to ONNX first, as scripts/export_model.sh does. FOLDER must not exist yet. docs/EXPORT.md
# says how to serve it and how to speak with it.
# Arguments go to scripts/make_triton_repository.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

run_python -m scripts.make_triton_repository "$@"
