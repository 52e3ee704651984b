// Package auth identifies callers: bearer secrets with a principal, a tenant and
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
//
// A service with users may act for one of them: in addition to its credentials an
// authenticator accepts delegations, tokens by an issuer it trusts that name
// person, tenant and scopes (see Delegation and Delegator). A person gets the
// scopes that both the token names and the issuer may pass on. Each token serves
// one write.
package auth
