module github.com/mlp-platform/platform/clients/go

go 1.26.0

require (
	github.com/mlp-platform/platform/libs/evidence v0.0.0
	github.com/oapi-codegen/runtime v1.8.0
)

require (
	github.com/apapsch/go-jsonmerge/v2 v2.0.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
)

replace github.com/mlp-platform/platform/libs/evidence => ../../libs/evidence
