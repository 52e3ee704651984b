// Package loopback is what every local page and API of one user shares: who may call it and how its secrets travel.
package loopback
