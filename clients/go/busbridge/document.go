// Package busbridge is the bus bridge's wire: its OpenAPI document, the models generated from it, which the bridge uses
// too, and a plain client. Decode its responses with package wire.
package busbridge

import _ "embed"

//go:generate sh ../../../scripts/oapi-codegen.sh -config codegen.yaml openapi.yaml

// Document is the OpenAPI document that the bridge serves at /openapi.json.
//
//go:embed openapi.yaml
var Document []byte
