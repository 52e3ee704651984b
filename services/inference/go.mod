module github.com/mlp-platform/platform/services/inference

go 1.26.0

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	github.com/goccy/go-yaml v1.19.2
	github.com/mlp-platform/platform/libs/onnx v0.0.0
	github.com/mlp-platform/platform/libs/problem v0.0.0
	google.golang.org/protobuf v1.36.12
)

require (
	dario.cat/mergo v1.0.2 // indirect
	github.com/Masterminds/goutils v1.1.1 // indirect
	github.com/Masterminds/semver/v3 v3.3.0 // indirect
	github.com/Masterminds/sprig/v3 v3.3.0 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/caarlos0/env/v11 v11.4.2 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/huandu/xstrings v1.5.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/jackc/tern/v2 v2.3.4 // indirect
	github.com/labstack/gommon v0.5.0 // indirect
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/mattn/go-isatty v0.0.22 // indirect
	github.com/mitchellh/copystructure v1.2.0 // indirect
	github.com/mitchellh/reflectwalk v1.0.2 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/shopspring/decimal v1.4.0 // indirect
	github.com/spf13/cast v1.7.0 // indirect
	github.com/swaggest/swgui v1.8.5 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasttemplate v1.2.2 // indirect
	github.com/yalue/onnxruntime_go v1.27.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/mlp-platform/platform/libs/problem => ../../libs/problem

replace github.com/mlp-platform/platform/libs/onnx => ../../libs/onnx

replace github.com/mlp-platform/platform/libs/tracker => ../../libs/tracker

replace github.com/mlp-platform/platform/libs/service => ../../libs/service

replace github.com/mlp-platform/platform/libs/auth => ../../libs/auth

replace github.com/mlp-platform/platform/libs/postgres => ../../libs/postgres

require github.com/prometheus/client_golang v1.25.0

require golang.org/x/sync v0.24.0

require github.com/mlp-platform/platform/libs/tracker v0.0.0

require github.com/mlp-platform/platform/libs/postgres v0.0.0

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/labstack/echo/v4 v4.16.0
)

replace github.com/mlp-platform/platform/libs/testenv => ../../libs/testenv

replace github.com/mlp-platform/platform/libs/embedded => ../../libs/embedded

replace github.com/mlp-platform/platform/libs/outbox => ../../libs/outbox

replace github.com/mlp-platform/platform/libs/coord => ../../libs/coord

require github.com/mlp-platform/platform/libs/outbox v0.0.0

require github.com/mlp-platform/platform/libs/auth v0.0.0

require (
	github.com/google/uuid v1.6.0
	github.com/mlp-platform/platform/libs/service v0.0.0
)
