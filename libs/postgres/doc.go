// Package postgres is what each service shares about its database: a pool bound
// to the service's own schema, numbered migrations, one way to a transaction,
// and the translation of driver errors.
package postgres
