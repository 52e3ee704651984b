package testenv

import (
	"context"
	"os"
)

// Servers that were started for all test binaries of a run, by libs/testenv/testservers. Unset, each binary starts
// its own.
const (
	sharedPostgresVariable = "TESTENV_POSTGRES" // URL of its administrator
	sharedRedisVariable    = "TESTENV_REDIS"    // host:port
)

// sharedServer is the address in variable, empty where there is none or each test binary must start its own container.
func sharedServer(variable string) string {
	if containersForced() {
		return ""
	}
	return os.Getenv(variable)
}

// StartShared starts one Postgres and one Redis. The environment makes test binaries use them; stop ends them and
// removes their data.
func StartShared(ctx context.Context) (environment []string, stop func(), err error) {
	defer func() {
		if err != nil {
			stopAll()
		}
	}()
	if err := checkMode(); err != nil || containersForced() {
		return nil, stopAll, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	postgres, err := startPostgres(ctx)
	if err != nil {
		return nil, nil, err
	}
	redis, err := startRedis(ctx)
	if err != nil {
		return nil, nil, err
	}
	return []string{sharedPostgresVariable + "=" + postgres, sharedRedisVariable + "=" + redis}, stopAll, nil
}
