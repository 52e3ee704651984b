package service

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// Base is the part of the configuration that services share; embed it.
type Base struct {
	// DatabaseURL is where the service's schema is.
	DatabaseURL Secret `env:"PLATFORM_DATABASE_URL"`
	// NATSURL is the broker; it may carry a user and password.
	NATSURL Secret `env:"NATS_URL" envDefault:"nats://localhost:4222"`
	// NATSReplicas and NATSMaxBytes configure the event stream where this service
	// creates it; 0 bytes means 1 GiB.
	NATSReplicas int   `env:"NATS_REPLICAS" envDefault:"1"`
	NATSMaxBytes int64 `env:"NATS_STREAM_MAX_BYTES" envDefault:"0"`
	// RedisURL is the coordinator's store when Coordinator is redis.
	RedisURL Secret `env:"REDIS_URL"`
	// Coordinator is redis or postgres; default redis if RedisURL is set.
	Coordinator string `env:"COORDINATOR"`
	// EventPublisher is nats, or log: events are then only logged.
	EventPublisher string `env:"EVENT_PUBLISHER" envDefault:"nats"`
	// EventRelayEnabled lets this process publish its outbox.
	EventRelayEnabled bool `env:"EVENT_RELAY_ENABLED" envDefault:"true"`
	// EventMaxAttempts is how often the broker may refuse an event before it is poison.
	EventMaxAttempts int `env:"EVENT_MAX_ATTEMPTS" envDefault:"5"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `env:"LOG_LEVEL" envDefault:"info"`
	// DrainDelay is how long the service still serves after SIGTERM, unready, until balancers have
	// heard of it; 0: it refuses new requests at once.
	DrainDelay time.Duration `env:"DRAIN_DELAY" envDefault:"5s"`
	// StartTimeout is how long the service waits for its database before it gives up; /livez answers
	// meanwhile. 0: one try.
	StartTimeout time.Duration `env:"START_TIMEOUT" envDefault:"60s"`
	// DataDisk is a directory on the disk that holds the service's state; /readyz answers 503 while that disk is full.
	// Empty: no disk is checked, as where the database runs elsewhere.
	DataDisk string `env:"PLATFORM_DATA_DISK"`
	// DrainSeconds is how long requests and workers may take to finish at shutdown.
	DrainSeconds int `env:"DRAIN_SECONDS" envDefault:"20"`
	// Tracing is where spans go.
	Tracing Tracing
}

// Limits of the settings.
const (
	maxDrainDelay   = 5 * time.Minute
	maxStartTimeout = time.Hour
)

// settle sets the fields that depend on others and checks the rest.
func (b *Base) settle() error {
	var faults []error
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }
	if b.Coordinator == "" {
		b.Coordinator = "postgres"
		if b.RedisURL != "" {
			b.Coordinator = "redis"
		}
	}
	switch b.Coordinator {
	case "postgres":
	case "redis":
		if b.RedisURL == "" {
			fault("COORDINATOR is redis, but REDIS_URL is not set; set it, or COORDINATOR=postgres")
		}
	default:
		fault("COORDINATOR is %q; it must be redis or postgres", b.Coordinator)
	}
	if b.EventPublisher != "nats" && b.EventPublisher != "log" {
		fault("EVENT_PUBLISHER is %q; it must be nats or log", b.EventPublisher)
	}
	if _, err := parseLevel(b.LogLevel); err != nil {
		fault("LOG_LEVEL is %q; it must be debug, info, warn or error", b.LogLevel)
	}
	if b.NATSReplicas < 1 || b.NATSReplicas > 5 {
		fault("NATS_REPLICAS is %d; it must be 1 to 5", b.NATSReplicas)
	}
	if b.NATSMaxBytes < 0 {
		fault("NATS_STREAM_MAX_BYTES is %d; it must be 0 (1 GiB) or more", b.NATSMaxBytes)
	}
	if b.EventMaxAttempts < 1 || b.EventMaxAttempts > 20 {
		fault("EVENT_MAX_ATTEMPTS is %d; it must be 1 to 20", b.EventMaxAttempts)
	}
	if b.DrainSeconds < 0 || b.DrainSeconds > 600 {
		fault("DRAIN_SECONDS is %d; it must be 0 to 600", b.DrainSeconds)
	}
	if b.DrainDelay < 0 || b.DrainDelay > maxDrainDelay {
		fault("DRAIN_DELAY is %s; it must be 0s to %s", b.DrainDelay, maxDrainDelay)
	}
	if b.StartTimeout < 0 || b.StartTimeout > maxStartTimeout {
		fault("START_TIMEOUT is %s; it must be 0s to %s", b.StartTimeout, maxStartTimeout)
	}
	for name, v := range map[string]Secret{"PLATFORM_DATABASE_URL": b.DatabaseURL, "NATS_URL": b.NATSURL, "REDIS_URL": b.RedisURL} {
		if err := CheckURL(name, v); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// CheckURL reports a fault of a connection URL, a placeholder as its password included; it does not quote the value, which may hold a password.
func CheckURL(name string, v Secret) error {
	if v == "" || !strings.Contains(v.Reveal(), "://") {
		return nil // a keyword/value connection string, or a bare host:port
	}
	u, err := url.Parse(strings.SplitN(v.Reveal(), ",", 2)[0]) // NATS takes a list
	if err != nil || (u.Host == "" && u.Path == "") {
		return fmt.Errorf("%s is not a URL", name)
	}
	password, _ := u.User.Password()
	return CheckSecret("the password in "+name, Secret(password))
}

// LoadConfig fills dst, a pointer to a struct with env tags, from environ
// (os.Environ). An empty variable counts as unset. Each Secret NAME may come from
// the file that NAME_FILE names instead. The error lists every fault, not only
// the first. If dst has a method Validate() error, it runs too.
func LoadConfig(dst any, environ []string) error {
	vars := make(map[string]string, len(environ))
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && value != "" {
			vars[name] = value
		}
	}
	f := fields{names: map[string]string{}}
	f.collect(reflect.ValueOf(dst).Elem(), "")
	var faults []error
	for _, name := range f.secrets {
		if err := fromFile(vars, name); err != nil {
			faults = append(faults, err)
		}
	}
	if err := env.ParseWithOptions(dst, env.Options{Environment: vars}); err != nil {
		faults = append(faults, f.explain(err, vars)...)
	}
	for _, b := range f.bases {
		if err := b.settle(); err != nil {
			faults = append(faults, err)
		}
	}
	for _, t := range f.tracings {
		faults = append(faults, t.faults()...)
	}
	if v, ok := dst.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// fields are the fields of a configuration struct, found by reflection.
type fields struct {
	names   map[string]string // Go field name → variable, for messages
	secrets []string          // variables of type Secret
	bases   []*Base
	// tracings are checked wherever they are: not every service has a Base.
	tracings []*Tracing
}

func (f *fields) collect(v reflect.Value, prefix string) {
	if b, ok := v.Addr().Interface().(*Base); ok {
		f.bases = append(f.bases, b)
	}
	if t, ok := v.Addr().Interface().(*Tracing); ok {
		f.tracings = append(f.tracings, t)
	}
	for i := range v.NumField() {
		t := v.Type().Field(i)
		if !t.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(t.Tag.Get("env"), ",")
		switch {
		case name != "":
			f.names[t.Name] = prefix + name
			if t.Type == reflect.TypeFor[Secret]() {
				f.secrets = append(f.secrets, prefix+name)
			}
		case t.Type.Kind() == reflect.Struct:
			f.collect(v.Field(i), prefix+t.Tag.Get("envPrefix"))
		}
	}
}

// explain rewrites the library's errors to name variables instead of Go fields.
func (f *fields) explain(err error, vars map[string]string) []error {
	var all env.AggregateError
	if !errors.As(err, &all) {
		return []error{err}
	}
	out := make([]error, 0, len(all.Errors))
	for _, e := range all.Errors {
		var parse env.ParseError
		if errors.As(e, &parse) && f.names[parse.Name] != "" {
			name := f.names[parse.Name]
			e = fmt.Errorf("%s is %q; it must be %s", name, vars[name], kindName(parse.Type))
		}
		out = append(out, e)
	}
	return out
}

func kindName(t reflect.Type) string {
	switch {
	case t.PkgPath() == "time" && t.Name() == "Duration":
		return "a duration such as 30s"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		return "a whole number"
	case t.Kind() == reflect.Float32, t.Kind() == reflect.Float64:
		return "a number"
	}
	return "of type " + t.String()
}

// maxSecretFile limits a secret's file, in bytes.
const maxSecretFile = 1 << 20

// fromFile puts the content of the file that NAME_FILE names into vars[NAME],
// without its last line feed.
func fromFile(vars map[string]string, name string) error {
	path := vars[name+"_FILE"]
	if path == "" {
		return nil
	}
	if vars[name] != "" {
		return fmt.Errorf("%s and %s_FILE are both set; keep one", name, name)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s_FILE names %s, which does not exist; write the secret to it, or unset %s_FILE", name, path, name)
	}
	if err != nil {
		return fmt.Errorf("%s_FILE: %w", name, err)
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s_FILE: %w", name, err)
	case len(raw) > maxSecretFile:
		return fmt.Errorf("%s_FILE: %s is larger than %d bytes", name, path, maxSecretFile)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
	if value == "" {
		return fmt.Errorf("%s_FILE: %s is empty", name, path)
	}
	vars[name] = value
	return nil
}

// RequireLoopbackIfOpen refuses an address that other machines can reach while
// no credentials are configured.
func RequireLoopbackIfOpen(addr string, authConfigured bool) error {
	if authConfigured {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); host == "localhost" || (ip != nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("address %s can be reached from other machines, but no credentials are configured; configure them, or listen on 127.0.0.1", addr)
}
