# Debian's Postgres with the start-up of the official image, as far as compose.yaml relies on it.
ARG BASE=mlp-platform/base:bookworm
FROM ${BASE}
COPY root/ /
COPY --chown=999:999 empty /var/lib/postgresql/data
ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/bin:/bin
USER 999:999
STOPSIGNAL SIGINT
ENTRYPOINT ["/usr/local/bin/docker-entrypoint.sh"]
CMD ["postgres"]
