package scheduler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// SSH runs commands on a login node of the cluster, each over a separate connection.
type SSH struct {
	addr   string
	config *ssh.ClientConfig
}

// SSHConfig is the host and the user of a connection.
type SSHConfig struct {
	Host string
	Port int
	User string
	// Key is the private key, without a passphrase.
	Key []byte
	// HostKey is the public key that the host must have, as a line such as "ssh-ed25519 AAAA…".
	HostKey string
}

// ErrHostKey means that the host has another key than the pinned one.
var ErrHostKey = errors.New("the host key is not the pinned one")

// NewSSH checks the keys; it does not connect.
func NewSSH(c SSHConfig) (*SSH, error) {
	signer, err := ssh.ParsePrivateKey(c.Key)
	if err != nil {
		return nil, fmt.Errorf("HPC_SSH_KEY: %w", err)
	}
	pinned, _, _, _, err := ssh.ParseAuthorizedKey([]byte(c.HostKey))
	if err != nil {
		return nil, fmt.Errorf(`HPC_SSH_HOST_KEY is no public key such as "ssh-ed25519 AAAA…": %w`, err)
	}
	// A host has several keys; only the pinned key's type is negotiated, so that the others do not matter.
	algorithms := []string{pinned.Type()}
	if pinned.Type() == ssh.KeyAlgoRSA {
		algorithms = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return &SSH{addr: net.JoinHostPort(c.Host, strconv.Itoa(c.Port)), config: &ssh.ClientConfig{
		User: c.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyAlgorithms: algorithms, Timeout: commandTimeout,
		HostKeyCallback: func(host string, _ net.Addr, key ssh.PublicKey) error {
			if bytes.Equal(key.Marshal(), pinned.Marshal()) {
				return nil
			}
			return fmt.Errorf("%w: %s has %s, HPC_SSH_HOST_KEY pins %s; pin the new key only if the host's administrators confirm it",
				ErrHostKey, host, ssh.FingerprintSHA256(key), ssh.FingerprintSHA256(pinned))
		},
	}}, nil
}

// Run runs one command. The protocol hands the host a line, which its shell reads: each argument is quoted.
func (s *SSH) Run(ctx context.Context, stdin string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	out, err := s.run(ctx, stdin, argv)
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, ErrHostKey):
		return "", err // the message is complete
	case ctx.Err() != nil:
		err = errors.Join(context.Cause(ctx), err)
	}
	return "", fmt.Errorf("%s on %s: %w", argv[0], s.addr, err)
}

func (s *SSH) run(ctx context.Context, stdin string, argv []string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// The package's calls know no context: closing the connection ends them.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	c, channels, requests, err := ssh.NewClientConn(conn, s.addr, s.config)
	if err != nil {
		return "", err
	}
	client := ssh.NewClient(c, channels, requests)
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	var out, errOut limited
	session.Stdin, session.Stdout, session.Stderr = strings.NewReader(stdin), &out, &errOut
	if err := session.Run(quote(argv)); err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}
