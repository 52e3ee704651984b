// Package wire decodes requests and encodes responses: the rate limit of a tenant,
// the size limit of a body and its decoding, text that can be stored, and pages of
// lists. Models and clients of the API live in clients/go/controlplane.
package wire
