package planetest

import (
	"github.com/mlp-platform/platform/libs/apitest"
	"github.com/mlp-platform/platform/services/control-plane/api"
)

// document is the API's document, by which the answers of all tests are judged.
var document = apitest.New(api.Document)
