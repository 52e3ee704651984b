ARG BASE=mlp-platform/base:bookworm
FROM ${BASE}
COPY root/ /
COPY --chown=999:999 empty /data
USER 999:999
CMD ["redis-server"]
