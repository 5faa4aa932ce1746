# Trains HiFi-GAN on 4 GPUs of NVIDIA DGX A100 (A100 80GB) in TF32; arguments go to train.py.
MODEL=HiFi-GAN exec bash "$(dirname "$0")/../scripts/train.sh" NUM_GPUS=4 BS=32 AMP=false "$@"
