// Package caller identifies the callers of the assistant and their roles.
//
// A key's prefix picks the list it must be in, and the role:
//
//	ki-admin-…  ASSISTANT_ADMIN_KEYS     admin
//	ki-op-…     ASSISTANT_OPERATOR_KEYS  operator
//	ki-ro-…     ASSISTANT_READONLY_KEYS  readonly, or a demo key (see Demo)
//	ki-alert-…  ASSISTANT_ALERT_KEYS     alerts: POST /v1/alerts and nothing else
//
// The principal is the key's id, the first 16 hex digits of its SHA-256: sessions belong to it and logs contain it,
// never the key. In place of a key a delegation of libs/auth is accepted, whose scopes name the role and whose subject
// is the principal. In addition to a key, a delegation in X-PLATFORM-On-Behalf-Of names the person on whose behalf a
// service calls: limits then count by that person instead of the key, and nothing else changes.
//
// With nothing configured every caller is admin, under the principal local. The service then listens on loopback only,
// and refuses requests that a web page of another site could send there.
package caller
