# Debian's Python with the packages that the lists in e2e/ pin; the lists' environments are in .cache.
ARG BASE=mlp-platform/python:bookworm
FROM ${BASE}
COPY site /opt/site
COPY root/ /
COPY --chown=65532:65532 empty /var/lib/platform
ENV PATH=/usr/local/bin:/usr/bin:/bin PYTHONPATH=/opt/site
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/stack"]
