# The hub image of zero-to-jupyterhub with benchpool. Run this in the checkout, after `make build`:
#   docker build --build-arg BASE_IMAGE=THAT-IMAGE -f helm/overlays/hub.Dockerfile -t registry.example.org/benchpool/hub-z2jh:0.2.0 .
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
USER root
COPY dist/*.whl /tmp/
RUN pip install --no-cache-dir --no-deps /tmp/*.whl && pip install --no-cache-dir httpx jinja2 msgspec platformdirs && rm /tmp/*.whl
# By ID, as the chart runs it. The build argument NB_USER of the base is not available here.
USER 1000
