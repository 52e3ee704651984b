package testenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// modeVariable forces containers where it is "containers", also where the servers are installed; unset, the servers
// that are installed run as processes and NATS runs inside the test binary.
const modeVariable = "TESTENV"

func containersForced() bool { return os.Getenv(modeVariable) == "containers" }

// checkMode refuses an unknown mode: a misspelt one would pass without a container.
func checkMode() error {
	if mode := os.Getenv(modeVariable); mode != "" && mode != "containers" {
		return fmt.Errorf("%s is %q; unset it, or set it to containers", modeVariable, mode)
	}
	return nil
}

// errForced is the reason to start a container although a binary may be available.
var errForced = errors.New(modeVariable + "=containers requires a container")

// containerReason is why a server cannot run as a process, nil where it can. missing is why its binary was not found.
func containerReason(missing error) error {
	if missing == nil && containersForced() {
		return errForced
	}
	return missing
}

func imageName(env, fallback string) string { return cmp.Or(os.Getenv(env), fallback) }

// setContainerDefaults sets what testcontainers detects wrongly or cannot have here, unless the environment sets it.
// Its reaper needs a separate image, which a machine without a registry does not have; each test binary ends its
// containers itself. And it looks for published ports on the default gateway, which is right from within a container
// and refused on the host, where the engine's socket is.
func setContainerDefaults() error {
	defaults := map[string]string{"TESTCONTAINERS_RYUK_DISABLED": "true"}
	if host := os.Getenv("DOCKER_HOST"); host == "" || strings.HasPrefix(host, "unix://") {
		defaults["TESTCONTAINERS_HOST_OVERRIDE"] = "127.0.0.1"
	}
	for name, value := range defaults {
		if _, set := os.LookupEnv(name); set {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// startContainer starts a server in Docker for the whole test binary and returns host:port of the inner port.
func startContainer(ctx context.Context, reason error, req testcontainers.ContainerRequest, port string) (addr string, err error) {
	c, err := runContainer(ctx, reason, req)
	if c != nil {
		atEnd(func() { _ = endContainer(c) }) // without the reaper, one that cannot be stopped outlives the run
	}
	if err != nil {
		return "", err
	}
	return c.PortEndpoint(ctx, port, "")
}

// runContainer starts a container, for the reason that no process can be started. One that failed to become ready is
// returned beside the error: the caller ends it.
func runContainer(ctx context.Context, reason error, req testcontainers.ContainerRequest) (c testcontainers.Container, err error) {
	// The library panics when it finds no Docker.
	defer func() {
		if p := recover(); p != nil {
			c, err = nil, fmt.Errorf("%w, and Docker does not answer (%v); install one of them", reason, p)
		}
	}()
	if err := setContainerDefaults(); err != nil {
		return nil, err
	}
	c, err = testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{ContainerRequest: req, Started: true})
	if err != nil {
		err = fmt.Errorf("%w, and no container of %s could be started (%w); install the server or start Docker", reason, req.Image, err)
	}
	return c, err
}

func endContainer(c testcontainers.Container) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return testcontainers.TerminateContainer(c, testcontainers.StopContext(ctx))
}
