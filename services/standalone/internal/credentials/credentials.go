// Package credentials makes the secrets of a one-process platform on its first
// start and keeps them in one file of the data directory, so that every start
// and every shell sees the same.
package credentials

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/renameio/v2"

	"github.com/mlp-platform/platform/libs/auth"
)

// The users of the message bus at the broker.
const (
	BusUser    = "bus" // producers
	BridgeUser = "bus-bridge"
)

// File is the name of the file in the data directory.
const File = "credentials.json"

// Credentials are the platform's secrets: 52 characters, 260 bits, each. Earlier versions made 26.
type Credentials struct {
	// ControlPlaneToken is the one a person at a shell uses: principal legacy,
	// read and write.
	ControlPlaneToken string `json:"control_plane_token"`
	CIToken           string `json:"ci_token"`        // control plane: reads, sends change notices
	OperatorToken     string `json:"operator_token"`  // control plane: read and write
	TrainerToken      string `json:"trainer_token"`   // control plane: for the trainer's reports
	SeedToken         string `json:"seed_token"`      // control plane: for seeding the samples
	InferenceToken    string `json:"inference_token"` // control plane: for inference to read admissions
	ServingToken      string `json:"serving_token"`   // inference: admin, for a person
	// ServingControlPlaneToken is the control plane's token at inference.
	ServingControlPlaneToken string `json:"serving_control_plane_token"`
	WebhookSecret            string `json:"modelrepo_webhook_secret"`
	NATSToken                string `json:"nats_token"`
	// BusPassword is the password of producers on the message bus, BridgePassword the bridge's; BusServingToken and
	// BusControlPlaneToken are the bridge's tokens at inference and the control plane.
	BusPassword          string `json:"bus_password"`
	BridgePassword       string `json:"bus_bridge_password"`
	BusServingToken      string `json:"bus_serving_token"`
	BusControlPlaneToken string `json:"bus_control_plane_token"`
	// TrackerToken and OrchestratorKey are required by the stand-ins; each start of the one process makes new ones.
	TrackerToken    string `json:"tracker_token"`
	OrchestratorKey string `json:"orchestrator_key"`
	EvidenceToken   string `json:"evidence_token"` // evidence API: reads, for a person
	// The part after the prefix in the assistant's key of each role.
	AssistantAdmin    string `json:"assistant_admin"`
	AssistantOperator string `json:"assistant_operator"`
	AssistantReadonly string `json:"assistant_readonly"`
	// DashboardAdmin and DashboardViewer are the passwords of the two roles; DashboardSigning signs their sessions.
	DashboardAdmin   string `json:"dashboard_admin_password"`
	DashboardViewer  string `json:"dashboard_viewer_password"`
	DashboardSigning string `json:"dashboard_jwt_secret"`
	// DashboardSealing is the secret from which the key of the dashboard's stored secrets is derived.
	DashboardSealing string `json:"dashboard_sealing"`
}

// each is the one list of the secrets.
func (c *Credentials) each() []*string {
	return []*string{
		&c.ControlPlaneToken, &c.CIToken, &c.OperatorToken, &c.TrainerToken, &c.SeedToken, &c.InferenceToken,
		&c.ServingToken, &c.ServingControlPlaneToken, &c.WebhookSecret, &c.NATSToken,
		&c.BusPassword, &c.BridgePassword, &c.BusServingToken, &c.BusControlPlaneToken, &c.TrackerToken, &c.OrchestratorKey, &c.EvidenceToken,
		&c.AssistantAdmin, &c.AssistantOperator, &c.AssistantReadonly,
		&c.DashboardAdmin, &c.DashboardViewer, &c.DashboardSigning, &c.DashboardSealing,
	}
}

const redacted = "[redacted]"

// String keeps the secrets out of prints.
func (Credentials) String() string { return redacted }

// GoString keeps the secrets out of %#v.
func (Credentials) GoString() string { return redacted }

// LogValue keeps the secrets out of logs.
func (Credentials) LogValue() slog.Value { return slog.StringValue(redacted) }

// LoadOrCreate reads the file of the data directory dir, or makes it. Secrets
// that a file of an earlier version lacks are added to it. The caller holds the
// directory's lock.
func LoadOrCreate(dir string) (Credentials, error) {
	c, err := readFile(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Credentials{}, err
	}
	before := c
	c.complete()
	if c == before {
		return c, nil
	}
	if err := writeFile(dir, c); err != nil {
		return c, err
	}
	return c, recordMade(dir, before, c, time.Now())
}

// complete makes the secrets that are absent.
func (c *Credentials) complete() {
	for _, s := range c.each() {
		if *s == "" {
			*s = rand.Text() + rand.Text() // the evidence API takes none below 32 characters
		}
	}
}

// Placeholders returns secrets that open nothing, to check a configuration with.
func Placeholders() (c Credentials) {
	c.complete()
	return c
}

// RenewStandIns renews the secrets of the tracker and orchestrator stand-ins at each start. Their clients send the
// secret to any process that holds the port: one collected there while the platform was down is worthless once it is
// up. The caller holds the directory's lock.
func RenewStandIns(dir string, c Credentials) (Credentials, error) {
	before := c
	c.TrackerToken, c.OrchestratorKey = rand.Text()+rand.Text(), rand.Text()+rand.Text()
	if err := writeFile(dir, c); err != nil {
		return c, err
	}
	return c, recordMade(dir, before, c, time.Now())
}

func writeFile(dir string, c Credentials) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encode credentials: %w", err)
	}
	// Whole or not at all, also when the machine stops in the middle.
	if err := renameio.WriteFile(filePath(dir), append(b, '\n'), 0o600, renameio.WithStaticPermissions(0o600)); err != nil {
		return fmt.Errorf("write the platform's secrets: %w", err)
	}
	return nil
}

// Load reads the file of the data directory dir.
func Load(dir string) (Credentials, error) {
	c, err := readFile(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Credentials{}, fmt.Errorf("%s is not there: start the platform once, or name its data directory in PLATFORM_DATA_DIR", filePath(dir))
	case err != nil:
		return Credentials{}, err
	}
	for _, s := range c.each() {
		if *s == "" {
			return Credentials{}, fmt.Errorf("%s is of an earlier version: start the platform once to complete it", filePath(dir))
		}
	}
	return c, nil
}

func filePath(dir string) string { return filepath.Join(dir, File) }

func readFile(dir string) (c Credentials, err error) {
	f, err := os.Open(filePath(dir))
	if err != nil {
		return c, fmt.Errorf("read the platform's secrets: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	if err != nil {
		return c, fmt.Errorf("read the platform's secrets: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return c, fmt.Errorf("%s may be read by others (mode %04o): chmod 600 it, and delete it if someone may have read it; new secrets are made at the next start", filePath(dir), mode)
	}
	if err := auth.CheckSecretOwner(filePath(dir), info); err != nil {
		return c, fmt.Errorf("read the platform's secrets: %w; new secrets are made at the next start", err)
	}
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(f); err != nil {
		return c, fmt.Errorf("read the platform's secrets: %w", err)
	}
	if err := parseSecrets(buf.Bytes(), &c); err != nil {
		return Credentials{}, fmt.Errorf("%s is damaged (%w): mend it, or delete it; new secrets are made at the next start", filePath(dir), err)
	}
	return c, nil
}

// parseSecrets is strict: a mistyped, empty or duplicate member hides the secret that its users have, and a new one in
// its place would lock them out silently. Errors quote no value.
func parseSecrets(text []byte, into *Credentials) error {
	var present map[string]jsontext.Value
	if err := jsonv2.Unmarshal(text, &present); err != nil { // refuses names that are there twice
		var syntax *jsontext.SyntacticError
		if errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName) {
			return fmt.Errorf("%s is there twice", syntax.JSONPointer.LastToken())
		}
		return errors.New("it is not a JSON object")
	}
	for name, value := range present {
		var secret string
		if err := jsonv2.Unmarshal(value, &secret); err != nil || value.Kind() != '"' || strings.TrimSpace(secret) != secret || secret == "" {
			return fmt.Errorf("%s must be a string, not empty and without space around it", name)
		}
	}
	if err := jsonv2.Unmarshal(text, into, jsonv2.RejectUnknownMembers(true)); err != nil {
		var semantic *jsonv2.SemanticError
		if errors.As(err, &semantic) && errors.Is(err, jsonv2.ErrUnknownName) {
			return fmt.Errorf("unknown member %s", semantic.JSONPointer.LastToken())
		}
		return errors.New("its members cannot be read")
	}
	return nil
}

type grant struct {
	Principal string   `json:"principal"`
	Tenant    string   `json:"tenant"`
	Scopes    []string `json:"scopes"`
}

func credentialMap(m map[string]grant) string {
	for secret, g := range m {
		g.Tenant = cmp.Or(g.Tenant, auth.LegacyTenant)
		m[secret] = g
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings alone
	}
	return string(b)
}

// ControlPlaneMap is the value of CONTROL_PLANE_CREDENTIALS_JSON.
func (c Credentials) ControlPlaneMap() string {
	return credentialMap(map[string]grant{
		c.CIToken:       {Principal: "ci", Scopes: []string{"read", "changes"}},
		c.OperatorToken: {Principal: "operator", Scopes: []string{"read", "write"}},
	})
}

// ControlPlaneSystemMap is the credential map of the platform's own components, which bear names that no
// environment variable can give.
func (c Credentials) ControlPlaneSystemMap() string {
	return credentialMap(map[string]grant{
		c.TrainerToken:         {Principal: "system:trainer", Scopes: []string{"read", "manage"}},
		c.SeedToken:            {Principal: "system:seed", Scopes: []string{"read", "write"}},
		c.InferenceToken:       {Principal: "system:inference", Tenant: auth.PlatformTenant, Scopes: []string{"read"}},
		c.BusControlPlaneToken: {Principal: "system:bus", Scopes: []string{"retrain"}},
	})
}

// InferenceMap is the value of INFERENCE_CREDENTIALS_JSON.
func (c Credentials) InferenceMap() string {
	return credentialMap(map[string]grant{
		c.ServingToken:             {Principal: "operator", Scopes: []string{"admin"}},
		c.ServingControlPlaneToken: {Principal: "control-plane", Tenant: auth.PlatformTenant, Scopes: []string{"admin"}},
		c.BusServingToken:          {Principal: "bus-bridge", Scopes: []string{"predict"}},
	})
}

// BusMap is the value of BUS_CREDENTIALS_JSON: clients of inference may read the state of the bus.
func (c Credentials) BusMap() string {
	return credentialMap(map[string]grant{c.ServingToken: {Principal: "operator", Scopes: []string{"read"}}})
}

// AssistantAdminKey, AssistantOperatorKey and AssistantReadonlyKey are the assistant's keys, one a role.
func (c Credentials) AssistantAdminKey() string    { return "ki-admin-" + c.AssistantAdmin }
func (c Credentials) AssistantOperatorKey() string { return "ki-op-" + c.AssistantOperator }
func (c Credentials) AssistantReadonlyKey() string { return "ki-ro-" + c.AssistantReadonly }

// DashboardSecretKey is the value of DASHBOARD_SECRET_KEY: base64 of 32 bytes.
func (c Credentials) DashboardSecretKey() string {
	key := sha256.Sum256([]byte("dashboard secret key/" + c.DashboardSealing))
	return base64.StdEncoding.EncodeToString(key[:])
}

// Addresses are where the parts of a platform listen, as URLs.
type Addresses struct {
	ControlPlane, Serving, Tracker, Evidence, Assistant, Dashboard, Bus string
	// NATS is host:port of the broker, ServingGRPC that of inference's gRPC.
	NATS, ServingGRPC string
	// Orchestrator ends in /api.
	Orchestrator string
	// DataDir holds the model repository.
	DataDir string
}

// Exports returns shell statements that set the variables of the platform's clients.
func (c Credentials) Exports(a Addresses) string {
	dir, err := filepath.Abs(a.DataDir)
	if err != nil { // the working directory is gone; the name as given is the best there is
		dir = a.DataDir
	}
	var b strings.Builder
	for _, kv := range [][2]string{
		{"DASHBOARD_URL", a.Dashboard},
		{"DASHBOARD_ADMIN_PASSWORD", c.DashboardAdmin},
		{"DASHBOARD_VIEWER_PASSWORD", c.DashboardViewer},
		{"CONTROL_PLANE_URL", a.ControlPlane},
		{"CONTROL_PLANE_TOKEN", c.ControlPlaneToken},
		{"SERVING_URL", a.Serving},
		{"SERVING_TOKEN", c.ServingToken},
		{"SERVING_GRPC_ADDR", a.ServingGRPC},
		{"TRACKING_URI", a.Tracker},
		{"MLFLOW_TRACKING_TOKEN", c.TrackerToken}, // the name under which the mlflow client expects it
		{"ORCHESTRATOR_API_URL", a.Orchestrator},
		{"PREFECT_API_KEY", c.OrchestratorKey}, // the name under which the prefect client expects it
		// Its websockets bear this one alone, of which it makes basic authentication.
		{"PREFECT_API_AUTH_STRING", "platform:" + c.OrchestratorKey},
		{"MODELREPO_WEBHOOK_SECRET", c.WebhookSecret},
		{"BUS_BRIDGE_URL", a.Bus},
		{"BUS_NATS_URL", (&url.URL{Scheme: "nats", User: url.UserPassword(BusUser, c.BusPassword), Host: a.NATS}).String()},
		{"SVC_CONTROL_TOWER_URL", a.Evidence},
		{"SVC_CONTROL_TOWER_TOKEN", c.EvidenceToken},
		{"ASSISTANT_URL", a.Assistant},
		{"ASSISTANT_ADMIN_KEY", c.AssistantAdminKey()},
		{"ASSISTANT_OPERATOR_KEY", c.AssistantOperatorKey()},
		{"ASSISTANT_READONLY_KEY", c.AssistantReadonlyKey()},
		{"ASSISTANT_KEY", c.AssistantOperatorKey()}, // the name that mlp chat reads
		{"PLATFORM_EVIDENCE_STORE", filepath.Join(dir, "evidence", "store.sqlite")},
		{"PLATFORM_MODELREPO", filepath.Join(dir, "modelrepo")},
	} {
		fmt.Fprintf(&b, "export %s=%s\n", kv[0], quoteForShell(kv[1]))
	}
	return b.String()
}

// quoteForShell makes one word of s for any POSIX shell.
func quoteForShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
