// Package trust reads the trust file: which identity providers the platform trusts, for what audience, and the role and
// tenant of the people that they vouch for.
//
// [Parse] checks the whole file and reports every fault with its line; a file with one fault is refused entirely, since
// half a trust file would admit people by rules that were never written. [Provider.Identify] maps verified claims to a
// person. It is a pure function: the caller has verified the token.
package trust
