# odradek in a small image: no compiler, no package cache, no root.
#   docker build -t odradek .
#   docker run -p 127.0.0.1:9092:9092 -v odradek-data:/data odradek
# Without 127.0.0.1: whoever reaches this machine is let in, in plaintext, unless --secure follows (docs/operations.md, "Containers").
# The target "spark" adds Java and PySpark, for the example job of docker-compose.yml.

# This stage has a compiler: what a request goes through is compiled to C (docs/operations.md, "A compiled build").
FROM python:3.13 AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY tools/build_hook.py tools/mend_generated.py ./tools/
COPY odradek ./odradek
RUN python -m venv /opt/odradek && ODRADEK_COMPILE=1 /opt/odradek/bin/pip install --no-cache-dir ".[tls]"

FROM python:3.13-slim AS spark
RUN apt-get update \
    && apt-get install -y --no-install-recommends default-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir "pyspark==4.0.0"
# A volume takes its owner from the directory that it is mounted on.
RUN useradd --create-home --uid 10001 spark && install -d -o spark -g spark /home/spark/.cache /home/spark/.cache/odradek
USER spark
WORKDIR /home/spark
COPY docs/examples/spark_read.py ./
ENTRYPOINT ["python", "spark_read.py"]

# The broker is the last stage, so that it is what a build without a target makes.
FROM python:3.13-slim AS broker
RUN useradd --system --uid 10000 --home-dir /data odradek && install -d -m 700 -o odradek -g odradek /data
COPY --from=build /opt/odradek /opt/odradek
ENV PATH=/opt/odradek/bin:$PATH PYTHONUNBUFFERED=1
USER odradek
VOLUME /data
EXPOSE 9092
STOPSIGNAL SIGTERM
# A real ApiVersions round trip, by TLS where the broker wants that. One listener always has port 9092 inside the container.
HEALTHCHECK --interval=5s --timeout=4s --start-period=5s --retries=3 \
    CMD ["python", "-m", "odradek.cli.health", "127.0.0.1:9092"]
ENTRYPOINT ["odradek", "serve", "--data-dir", "/data"]
# What clients outside the container are told to connect to; override CMD to be reached from other machines, or to let in by
# TLS and a password alone: --secure --host 0.0.0.0
CMD ["--set", "listeners=PLAINTEXT://0.0.0.0:9092", "--set", "advertised.listeners=PLAINTEXT://localhost:9092"]
