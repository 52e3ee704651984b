# Debian's etcd, which Patroni's members agree in.
ARG BASE=mlp-platform/base:bookworm
FROM ${BASE}
COPY root/ /
COPY --chown=65532:65532 empty /data
ENV PATH=/usr/local/bin:/usr/bin
USER 65532:65532
CMD ["etcd"]
