//go:build tools

// Package oapicodegen pins the OpenAPI code generator; scripts/tool.sh builds it.
package oapicodegen

import _ "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen"
