# Trains HiFi-GAN on 4 GPUs of NVIDIA T4 (16GB) in FP32; arguments go to train.py.
MODEL=HiFi-GAN exec bash "$(dirname "$0")/../scripts/train.sh" NUM_GPUS=4 BS=32 AMP=false "$@"
