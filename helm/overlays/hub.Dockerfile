# zero-to-jupyterhub's own image of the hub with benchpool in it. From the folder of the checkout, after `make build`:
#   docker build --build-arg BASE_IMAGE=THAT-IMAGE -f helm/overlays/hub.Dockerfile -t registry.example.org/benchpool/hub-z2jh:0.2.0 .
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
USER root
COPY dist/*.whl /tmp/
RUN pip install --no-cache-dir --no-deps /tmp/*.whl && pip install --no-cache-dir httpx jinja2 msgspec platformdirs && rm /tmp/*.whl
# By number, as the chart runs it: the base's NB_USER is known while the base is built and not here.
USER 1000
