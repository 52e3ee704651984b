package testenv

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

// brokerContainer is a NATS server in a container. Its streams live in the container, which a stop keeps.
type brokerContainer struct {
	container testcontainers.Container
	addr      string
	running   bool
}

// startContainer is Start where containers are forced; b.mu is held.
func (b *Broker) startContainer() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var err error
	switch {
	case b.inside == nil:
		err = b.createContainer(ctx)
	case !b.inside.running:
		err = b.inside.container.Start(ctx)
	default:
		return
	}
	if err == nil {
		b.inside.running = true
		err = awaitBroker(ctx, b.inside.addr)
	}
	if err != nil {
		b.t.Fatalf("testenv: NATS: %v", err)
	}
	b.url = "nats://" + b.inside.addr
}

// createContainer publishes the server on a fixed port of the host: an engine assigns a new one to a container that
// starts again.
func (b *Broker) createContainer(ctx context.Context) (err error) {
	if b.port == 0 {
		if b.port, err = freePort(); err != nil {
			return err
		}
	}
	sync := ""
	if b.synced {
		sync = "sync_interval: always"
	}
	c, err := runContainer(ctx, errForced, testcontainers.ContainerRequest{
		Image: imageName("NATS_IMAGE", "nats:2"), ExposedPorts: []string{"4222/tcp"},
		HostConfigModifier: func(host *container.HostConfig) {
			host.PortBindings = network.PortMap{network.MustParsePort("4222/tcp"): {{HostPort: strconv.Itoa(b.port)}}}
		},
		Files: []testcontainers.ContainerFile{{
			Reader:            strings.NewReader("jetstream { store_dir: \"/data\"\n" + sync + "\n}\n"),
			ContainerFilePath: "/platform.conf", FileMode: 0o644,
		}},
		Cmd:        []string{"--config", "/platform.conf"},
		WaitingFor: wait.ForLog("Server is ready"),
	})
	if c != nil {
		b.inside = &brokerContainer{container: c, running: true}
	}
	if err != nil {
		return err
	}
	b.inside.addr, err = c.PortEndpoint(ctx, "4222/tcp", "")
	return err
}

// awaitBroker waits for the server's greeting. Its log does not report a second start, and a connection alone proves
// nothing: the engine's proxy accepts it before the server does.
func awaitBroker(ctx context.Context, addr string) error {
	for {
		err := readGreeting(ctx, addr)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func readGreeting(ctx context.Context, addr string) error {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // fails on a closed connection only, as does what follows
	greeting := make([]byte, 5)
	if _, err := conn.Read(greeting); err != nil {
		return err
	}
	if !bytes.Equal(greeting, []byte("INFO ")) {
		return fmt.Errorf("unexpected greeting %q", greeting)
	}
	return nil
}

func (c *brokerContainer) stop() error {
	if !c.running {
		return nil
	}
	c.running = false
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	patience := 10 * time.Second
	return c.container.Stop(ctx, &patience)
}

func (c *brokerContainer) remove(t testing.TB) {
	t.Helper()
	if err := endContainer(c.container); err != nil {
		t.Errorf("testenv: remove the container of NATS: %v", err)
	}
}
