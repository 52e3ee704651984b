// Package postgres holds the database code that all services share: a pool
// bound to the service's own schema, numbered migrations, one way to a
// transaction, and the translation of driver errors.
package postgres
