# An image of a program that scripts/images.sh has laid out in root/.
ARG BASE=mlp-platform/base:bookworm
FROM ${BASE}
COPY root/ /
COPY --chown=65532:65532 empty /var/lib/platform
COPY --chown=65532:65532 empty /data
ENV PATH=/usr/local/bin:/usr/bin:/bin
USER 65532:65532
