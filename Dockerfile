# The shipped voice on a CPU, for serving alone:
#   docker build . --target cpu -t speech && docker run --rm -p 8080:8080 speech
#   docker run --rm -p 8080:8080 -v "$PWD/output:/voices:ro" speech --fastpitch /voices/my_voice/FastPitch_checkpoint_400.pt
# The toolkit on NVIDIA's PyTorch image, the default:
#   docker build . -t speech-toolkit
#   docker run --gpus all --ipc host -it --rm -v "$PWD:/workspace/speech-toolkit" speech-toolkit
ARG FROM_IMAGE_NAME=nvcr.io/nvidia/pytorch:26.03-py3

FROM python:3.13-slim AS cpu
# PyTorch's index of CPU builds; without it the image also holds gigabytes of CUDA's libraries.
ARG PIP_EXTRA_INDEX_URL
COPY constraints.txt requirements-speak.txt requirements-serve.txt /tmp/
RUN pip install --no-cache-dir -c /tmp/constraints.txt -r /tmp/requirements-speak.txt -r /tmp/requirements-serve.txt
RUN --mount=type=bind,target=/src,rw pip install --no-cache-dir --no-deps /src && useradd --create-home speech
USER speech
WORKDIR /home/speech
EXPOSE 8080
ENTRYPOINT ["speech", "serve", "--host", "0.0.0.0", "--port", "8080"]

FROM ${FROM_IMAGE_NAME} AS gpu
WORKDIR /workspace/speech-toolkit
COPY constraints.txt requirements*.txt ./
# What the image brings stays, its own build of torch above all, and with it the image's own pip constraints. What is added
# comes in the versions that were tested.
RUN pip list --format=freeze | sed -E 's/[ =].*/=/; s/[._]/-/g' | tr '[:upper:]' '[:lower:]' > /tmp/image.txt \
    && grep -vFif /tmp/image.txt constraints.txt > /tmp/constraints.txt \
    && cp requirements*.txt /tmp && sed -i '/^torch[<>=]/d' /tmp/requirements-speak.txt \
    && pip install --no-cache-dir -c /tmp/constraints.txt -r /tmp/requirements-dev.txt
# The scripts use what is installed here and make no .venv.
ENV USE_SYSTEM_PYTHON=1
COPY . .
