ARG BASE=mlp-platform/base:bookworm
FROM ${BASE}
COPY root/ /
COPY --chown=65534:65534 empty /prometheus
USER 65534:65534
ENTRYPOINT ["/usr/bin/prometheus"]
