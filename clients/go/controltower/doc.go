// Package controltower is the client of the local evidence read API. It makes one
// request a call, always to 127.0.0.1, and verifies every answer before it returns
// it: its digest, its kind, that it is about the requested object, and the digests
// inside it. No call writes.
//
// The types of the documents are those of libs/evidence, from which the server
// writes its answers: the API's OpenAPI 3.1 document is assembled from JSON Schemas
// of draft 2020-12 (const, prefixItems, type null), which the generator of the other
// clients does not take.
package controltower
