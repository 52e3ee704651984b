package app

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mlp-platform/platform/libs/cli/printable"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/services/evidence-api/internal/status"
)

// Defaults and limits of the settings.
const (
	DefaultPort = 8770

	DefaultRequestTimeout = 10 * time.Second
	MinRequestTimeout     = 100 * time.Millisecond
	MaxRequestTimeout     = 300 * time.Second

	DefaultConcurrentRequests = 16
	MaxConcurrentRequests     = 1024

	DefaultStreams = 8
	MaxStreams     = 64

	// MaxReport limits the bytes of the report that the page opens with.
	MaxReport = 2 << 20
)

// Token is the secret that callers present. It prints as [redacted].
type Token string

const redacted = "[redacted]"

// String implements [fmt.Stringer].
func (Token) String() string { return redacted }

// GoString implements [fmt.GoStringer].
func (Token) GoString() string { return redacted }

// LogValue implements [slog.LogValuer].
func (Token) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements [encoding.TextMarshaler].
func (Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Config is the complete configuration of the server. The zero value of each field is its default.
type Config struct {
	// Port on 127.0.0.1: 8770 if the variable is unset; 0 is any free port.
	Port int `env:"SVC_CONTROL_TOWER_PORT" default:"8770"`
	// Token of 32 to 4096 letters, digits and -._~; empty: a random one that is not disclosed, so that only a launch
	// code opens the page.
	Token Token `env:"SVC_CONTROL_TOWER_TOKEN"`
	// StorePath is the store's file; empty: none, and every read from it answers 503.
	StorePath string `env:"SVC_PRODUCT_SPINE_STORE"`
	// RequestTimeout limits head, body and answer separately; in the environment in seconds, 0.1 to 300.
	RequestTimeout time.Duration `env:"SVC_CONTROL_TOWER_REQUEST_TIMEOUT" default:"10.0"`
	// MaxConcurrentRequests limits the requests handled concurrently, 1 to 1024; more are refused.
	MaxConcurrentRequests int `env:"SVC_CONTROL_TOWER_MAX_CONCURRENT_REQUESTS" default:"16"`
	// MaxStreams limits the open event streams, 1 to 64; more are refused.
	MaxStreams int `env:"SVC_CONTROL_TOWER_MAX_SSE_CLIENTS" default:"8"`
	// AccessLog receives a line per request; nil: off. In the environment 1, true, yes or on: standard error.
	AccessLog io.Writer `env:"SVC_HTTP_ACCESS_LOG"`

	// Report is the report that the page opens with, at most 2 MiB of UTF-8; nil: a built-in sample of two attempts.
	Report []byte
	// Version of the build, sent as X-SVC-Service-Version; empty: "dev".
	Version string
	// Heartbeat is the time without events after which a stream gets a comment; 0: 15 s.
	Heartbeat time.Duration
	// MaxStream limits the duration of a stream; 0: 300 s.
	MaxStream time.Duration
	// DrainTimeout limits how long requests may still take when the server stops; 0: 5 s.
	DrainTimeout time.Duration
	// Listener to serve instead of Port.
	Listener net.Listener
	// Started is called when the server listens.
	Started func(Tower)
	// Abort ends a drain at once when it is closed.
	Abort <-chan struct{}
}

// Tower is where a started server is reached.
type Tower struct {
	URL    string        // http://127.0.0.1:PORT
	Launch func() string // a fresh address that opens the page once, with the token
}

// LoadConfig reads environ (os.Environ); the error lists every fault. An empty variable
// counts as unset, except the token: an empty secret is a mistake that must not start a
// server.
func LoadConfig(environ []string) (Config, error) {
	cfg := Config{Port: DefaultPort}.withDefaults()
	l := loader{}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		switch name {
		case "SVC_CONTROL_TOWER_TOKEN":
			if cfg.Token = Token(value); !loopback.ValidToken(value) {
				l.fault(errToken)
			}
		case "SVC_PRODUCT_SPINE_STORE":
			cfg.StorePath = value
		case "SVC_CONTROL_TOWER_PORT":
			l.number(name, value, &cfg.Port)
		case "SVC_CONTROL_TOWER_MAX_CONCURRENT_REQUESTS":
			l.positive(name, value, &cfg.MaxConcurrentRequests)
		case "SVC_CONTROL_TOWER_MAX_SSE_CLIENTS":
			l.positive(name, value, &cfg.MaxStreams)
		case "SVC_CONTROL_TOWER_REQUEST_TIMEOUT":
			l.seconds(name, value, &cfg.RequestTimeout)
		case status.AccessLogVariable:
			cfg.AccessLog = nil
			if slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(strings.TrimSpace(value))) {
				cfg.AccessLog = printable.NewWriter(os.Stderr) // callers choose the paths
			}
		}
	}
	checked := cfg
	if !loopback.ValidToken(string(checked.Token)) {
		checked.Token = "" // reported above
	}
	l.fault(checked.Check())
	return cfg, errors.Join(l.faults...)
}

var errToken = errors.New("SVC_CONTROL_TOWER_TOKEN must be 32 to 4096 letters, digits and -._~ (leave it unset for a generated one)")

// loader reads values and collects their faults.
type loader struct{ faults []error }

func (l *loader) fault(err error) {
	if err != nil {
		l.faults = append(l.faults, err)
	}
}

func (l *loader) number(name, value string, into *int) {
	if value == "" {
		return
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		l.fault(fmt.Errorf("%s must be an integer", name))
		n = *into
	}
	*into = n
}

// positive is number for a field whose 0 would mean the default: an explicit 0 is refused.
func (l *loader) positive(name, value string, into *int) {
	if l.number(name, value, into); value != "" && *into == 0 {
		*into = -1
	}
}

func (l *loader) seconds(name, value string, into *time.Duration) {
	if value == "" {
		return
	}
	d, err := Seconds(value)
	if err != nil {
		l.fault(fmt.Errorf("%s %w", name, err))
		return
	}
	*into = d
}

// Seconds reads a duration as flags and variables give it: decimal seconds above 0.
func Seconds(text string) (time.Duration, error) {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(s) || s <= 0 || s > 1e6 {
		return 0, errors.New("must be a number of seconds above 0")
	}
	return time.Duration(math.Round(s * float64(time.Second))), nil
}

// withDefaults sets the defaults of zero fields, except the token.
func (c Config) withDefaults() Config {
	or := func(d *time.Duration, standard time.Duration) {
		if *d == 0 {
			*d = standard
		}
	}
	or(&c.RequestTimeout, DefaultRequestTimeout)
	or(&c.Heartbeat, 15*time.Second)
	or(&c.MaxStream, 300*time.Second)
	or(&c.DrainTimeout, 5*time.Second)
	if c.MaxConcurrentRequests == 0 {
		c.MaxConcurrentRequests = DefaultConcurrentRequests
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = DefaultStreams
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	return c
}

// Check returns everything that is wrong with the configuration.
func (c Config) Check() error {
	c = c.withDefaults()
	var faults []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	must(c.Port >= 0 && c.Port <= 65535, "the port must be from 0 (any free one) to 65535")
	if c.Token != "" && !loopback.ValidToken(string(c.Token)) {
		faults = append(faults, errToken)
	}
	must(c.RequestTimeout >= MinRequestTimeout && c.RequestTimeout <= MaxRequestTimeout,
		"the request timeout must be from %.1f to %.1f seconds", MinRequestTimeout.Seconds(), MaxRequestTimeout.Seconds())
	must(c.MaxConcurrentRequests >= 1 && c.MaxConcurrentRequests <= MaxConcurrentRequests,
		"the number of concurrent requests must be from 1 to %d", MaxConcurrentRequests)
	must(c.MaxStreams >= 1 && c.MaxStreams <= MaxStreams, "the number of event streams must be from 1 to %d", MaxStreams)
	must(c.Heartbeat > 0 && c.MaxStream > 0 && c.DrainTimeout > 0, "heartbeat, stream length and drain time must be above 0")
	must(len(c.Report) <= MaxReport, "the report has more than %d bytes", MaxReport)
	must(utf8.Valid(c.Report), "the report is not UTF-8")
	must(loopback.ValidName(c.Version), "the version must be 1 to 128 visible ASCII characters")
	return errors.Join(faults...)
}
