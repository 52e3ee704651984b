package controlplanetest

import (
	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/apitest"
)

// document is the OpenAPI document, against which the answers of all tests are validated.
var document = apitest.New(api.Document)
