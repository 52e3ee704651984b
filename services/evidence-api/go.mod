module github.com/mlp-platform/platform/services/evidence-api

go 1.26.0

replace github.com/mlp-platform/platform/libs/evidence => ../../libs/evidence

require (
	github.com/mlp-platform/platform/libs/evidence v0.0.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
)

require (
	github.com/mlp-platform/platform/libs/loopback v0.0.0
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/mlp-platform/platform/libs/loopback => ../../libs/loopback
