// Package controlplane is the control plane's wire: its OpenAPI document, the models
// generated from it, which the service uses too, and a plain client. Decode its
// responses with package wire.
package controlplane

import _ "embed"

//go:generate sh ../../../scripts/oapi-codegen.sh -config codegen.yaml openapi.yaml

// Document is the OpenAPI document that the service serves at /openapi.json.
//
//go:embed openapi.yaml
var Document []byte
