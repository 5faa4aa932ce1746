# The toolkit on NVIDIA's PyTorch image:  docker build . -t speech-toolkit
#   docker run --gpus all --ipc host -it --rm -v "$PWD:/workspace/speech-toolkit" speech-toolkit
ARG FROM_IMAGE_NAME=nvcr.io/nvidia/pytorch:26.03-py3
FROM ${FROM_IMAGE_NAME}

WORKDIR /workspace/speech-toolkit
COPY requirements.txt requirements-dev.txt ./
# The image's own build of torch stays, and with it its pip constraints on what torch was built against.
RUN grep -v '^torch==' requirements.txt > /tmp/requirements.txt \
    && sed 's|^-r requirements.txt|-r /tmp/requirements.txt|' requirements-dev.txt > /tmp/requirements-dev.txt \
    && pip install --no-cache-dir -r /tmp/requirements-dev.txt \
    && python -c 'import torch; assert torch.version.cuda, "the CUDA build of torch was replaced"'
# The scripts use what is installed here and make no .venv.
ENV USE_SYSTEM_PYTHON=1
COPY . .
