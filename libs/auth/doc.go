// Package auth says who calls: bearer secrets with a principal, a tenant and
// scopes, read once from the environment, held as digests.
//
// The order of the checks is part of the API:
//
//	credential map malformed, or it holds the legacy secret   503 auth_misconfigured
//	nothing configured                                        503 auth_not_configured
//	no bearer / unknown bearer                                401 missing_credential / invalid_credential
//	scope missing                                             403 insufficient_scope
//
// A faulty map fails closed: while it is faulty no bearer is accepted, the
// legacy one included.
package auth
