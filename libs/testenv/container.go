package testenv

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

func imageName(env, fallback string) string { return cmp.Or(os.Getenv(env), fallback) }

// setContainerDefaults tells testcontainers, where nobody has, what it finds out wrongly or cannot have here. Its
// reaper is an image of its own, which a machine without a registry does not have; each test binary ends its
// containers itself. And it looks for published ports on the default gateway, which is right from within a
// container and refused on the host, where the engine's socket is.
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

// startContainer starts a server in Docker, when its binary is missing, and gives
// host:port of the inner port.
func startContainer(ctx context.Context, missing error, req testcontainers.ContainerRequest, port string) (addr string, err error) {
	// The library panics when it finds no Docker.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w, and Docker does not answer (%v); install one of them", missing, p)
		}
	}()
	if err := setContainerDefaults(); err != nil {
		return "", err
	}
	c, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{ContainerRequest: req, Started: true})
	if c != nil {
		atEnd(func() {
			stop, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			_ = testcontainers.TerminateContainer(c, testcontainers.StopContext(stop)) // without the reaper, one that cannot be stopped outlives the run
		})
	}
	if err != nil {
		return "", fmt.Errorf("%w, and no container of %s could be started (%w); install the server or start Docker", missing, req.Image, err)
	}
	return c.PortEndpoint(ctx, port, "")
}
