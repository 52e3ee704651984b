package testenv

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

func image(env, fallback string) string { return cmp.Or(os.Getenv(env), fallback) }

// container starts a server in Docker, when its binary is missing, and gives
// host:port of the inner port.
func container(ctx context.Context, missing error, req testcontainers.ContainerRequest, port string) (addr string, err error) {
	// The library panics when it finds no Docker.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w, and Docker does not answer (%v); install one of them", missing, p)
		}
	}()
	c, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{ContainerRequest: req, Started: true})
	if c != nil {
		atEnd(func() {
			stop, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			_ = testcontainers.TerminateContainer(c, testcontainers.StopContext(stop)) // the reaper takes what is left
		})
	}
	if err != nil {
		return "", fmt.Errorf("%w, and no container of %s could be started (%w); install the server or start Docker", missing, req.Image, err)
	}
	return c.PortEndpoint(ctx, port, "")
}
