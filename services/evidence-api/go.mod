module github.com/mlp-platform/platform/services/evidence-api

go 1.26.0

replace github.com/mlp-platform/platform/libs/evidence => ../../libs/evidence

require (
	github.com/dop251/goja v0.0.0-20260917113740-793a2a65c13b
	github.com/mlp-platform/platform/libs/evidence v0.0.0
	github.com/prometheus/client_model v0.6.3
	github.com/prometheus/common v0.72.1
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	modernc.org/sqlite v1.61.1
)

require (
	github.com/dlclark/regexp2/v2 v2.5.2 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/go-sourcemap/sourcemap v2.1.3+incompatible // indirect
	github.com/google/pprof v0.0.0-20261016150608-1facf8f91b50 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	golang.org/x/sys v0.49.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	modernc.org/libc v1.79.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)

require (
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

require (
	github.com/mlp-platform/platform/clients/go v0.0.0
	github.com/mlp-platform/platform/libs v0.0.0
)

replace github.com/mlp-platform/platform/libs => ../../libs

replace github.com/mlp-platform/platform/libs/embedded => ../../libs/embedded

replace github.com/mlp-platform/platform/clients/go => ../../clients/go
