# Trains Jasper on 16 GPUs of NVIDIA DGX-2 (V100 32GB) in float32; arguments go to train.py.
MODEL=Jasper exec bash "$(dirname "$0")/../scripts/train.sh" NUM_GPUS=16 BS=32 GRAD_ACCUMULATION=1 AMP=false "$@"
