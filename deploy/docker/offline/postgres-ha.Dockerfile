# Debian's Postgres with Debian's Patroni, which makes one of two the primary.
ARG BASE=mlp-platform/python:bookworm
FROM ${BASE}
COPY root/ /
COPY --chown=999:999 empty /var/lib/postgresql/data
ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp
USER 999:999
STOPSIGNAL SIGINT
CMD ["/usr/bin/patroni", "/run/secrets/patroni.yml"]
