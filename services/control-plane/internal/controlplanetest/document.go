package controlplanetest

import (
	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/apitest"
)

// document is the API's document, by which the answers of all tests are judged.
var document = apitest.New(api.Document)
