# The toolkit on NVIDIA's PyTorch image:  docker build . -t speech-toolkit
#   docker run --gpus all --ipc host -it --rm -v "$PWD:/workspace/speech-toolkit" speech-toolkit
ARG FROM_IMAGE_NAME=nvcr.io/nvidia/pytorch:26.03-py3
FROM ${FROM_IMAGE_NAME}

WORKDIR /workspace/speech-toolkit
COPY constraints.txt requirements*.txt ./
# What the image brings stays, its own build of torch above all, and with it the image's own pip constraints. What is added
# comes in the versions that were tested.
RUN pip list --format=freeze | sed -E 's/[ =].*/=/; s/[._]/-/g' | tr '[:upper:]' '[:lower:]' > /tmp/image.txt \
    && grep -vFif /tmp/image.txt constraints.txt > /tmp/constraints.txt \
    && cp requirements*.txt /tmp && sed -i '/^torch[<>=]/d' /tmp/requirements-speak.txt \
    && pip install --no-cache-dir -c /tmp/constraints.txt -r /tmp/requirements-dev.txt \
    && python -c 'import torch; assert torch.version.cuda, "the CUDA build of torch was replaced"'
# The scripts use what is installed here and make no .venv.
ENV USE_SYSTEM_PYTHON=1
COPY . .
