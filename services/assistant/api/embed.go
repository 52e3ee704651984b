// Package api holds the assistant's OpenAPI document and the types generated from it.
package api

import _ "embed"

//go:generate sh ../../../scripts/oapi-codegen.sh -config codegen.yaml openapi.yaml

// Document is openapi.yaml as it was when this binary was built.
//
//go:embed openapi.yaml
var Document []byte
