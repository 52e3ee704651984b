module github.com/mlp-platform/platform/libs/outbox

go 1.26.0
