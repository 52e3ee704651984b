package loopback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// Listen opens a port on 127.0.0.1, 0 for any that is free. The error is a
// sentence for the user who chose the port.
func Listen(port int) (net.Listener, error) {
	if port < 0 || port > 65535 {
		return nil, fmt.Errorf("port %d is out of range: choose 1 to 65535, or 0 for any free port", port)
	}
	// One request a connection on one machine: probes of idle connections and
	// multipath would be system calls without a use.
	lc := net.ListenConfig{KeepAlive: -1}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(context.Background(), "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d on 127.0.0.1 is taken: stop the program that uses it, or choose another port (0 takes any free one)", port)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("port %d on 127.0.0.1 is not allowed to this user: choose one above 1023", port)
	default:
		return nil, fmt.Errorf("listen on 127.0.0.1 port %d: %w", port, err)
	}
}
