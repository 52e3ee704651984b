# Debian's HAProxy; its configuration is mounted.
ARG BASE=mlp-platform/base:bookworm
FROM ${BASE}
COPY root/ /
ENV PATH=/usr/sbin:/usr/bin
USER 65532:65532
CMD ["haproxy"]
