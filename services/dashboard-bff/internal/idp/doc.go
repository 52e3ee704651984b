// Package idp believes identity providers as far as the trust file says: it rereads the file, fetches what providers
// publish, verifies their tokens and says who sent them.
//
// Whatever a provider answers is outside data: bodies are bounded, redirects are not followed, and keys are fetched
// again for an unknown key id at most once a minute, so that forged tokens cannot make the dashboard call out.
package idp
