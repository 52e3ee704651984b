// Package clients is the Go side of every service's wire. Each folder holds one service's
// OpenAPI document, the models generated from it and a plain client; wire decodes responses.
package clients
