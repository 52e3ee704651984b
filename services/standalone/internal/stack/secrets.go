package stack

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/standalone/internal/credentials"
)

// The users that the containers run as.
const (
	serviceUser  = 65532
	databaseUser = 999 // of Postgres and Redis, also in their publishers' images
)

// databasesFile holds the secrets of the data services, which a single process has no need of.
const databasesFile = "databases.json"

// databases are the passwords of the data services.
type databases struct {
	Postgres     string `json:"postgres_password"`     // of the superuser
	Platform     string `json:"platform_password"`     // of the owner of the services' schemas
	Orchestrator string `json:"orchestrator_password"` // of the owner of the orchestrator's database
	Redis        string `json:"redis_password"`
	Replication  string `json:"replication_password"` // of a standby database
	Failover     string `json:"failover_password"`    // for requests for a promotion
	Routes       string `json:"routes_password"`      // between brokers
}

// minSecret is the minimum length of a user-supplied secret.
const minSecret = 24

// WriteSecrets makes the secrets of a stack in dir on the first call, and writes for each service the files that it
// alone can read. Secrets that are there stay, so a stack can be given its own. The network is the first three parts of
// the one in which the data services of compose.ha.yaml have fixed addresses; "" is the default.
func WriteSecrets(dir, network string) error {
	network, err := dataNetwork(network)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	creds, err := credentials.LoadOrCreate(dir)
	if err != nil {
		return err
	}
	dbs, err := loadDatabases(dir)
	if err != nil {
		return err
	}
	if err := checkStrength(creds, dbs); err != nil {
		return err
	}
	dashboard := filepath.Join(dir, "dashboard")
	if err := makeOwned(dashboard, serviceUser); err != nil {
		return err
	}
	keyFile := filepath.Join(dashboard, "delegation.key")
	delegator, err := auth.LoadOrCreateDelegator("dashboard", keyFile)
	if err != nil {
		return err
	}
	if err := own(keyFile, serviceUser); err != nil {
		return err
	}
	files, err := layout(creds, dbs, delegator.PublicKey())
	if err != nil {
		return err
	}
	addFiles(files, layoutHA(creds, dbs, network))
	certs, err := certificates(dir, time.Now())
	if err != nil {
		return err
	}
	addFiles(files, certs)
	for service, contents := range files {
		owner := serviceUser
		if strings.HasPrefix(service, "postgres") || strings.HasPrefix(service, "redis") {
			owner = databaseUser
		}
		folder := filepath.Join(dir, service)
		if err := makeOwned(folder, owner); err != nil {
			return err
		}
		for name, content := range contents {
			if old, err := os.ReadFile(filepath.Join(folder, name)); err == nil && isKept(name, string(old), network) {
				continue
			}
			if err := writeOwned(filepath.Join(folder, name), content, owner); err != nil {
				return err
			}
		}
	}
	return nil
}

// layout is every file by service and name. A file with a variable's name holds its value.
func layout(c credentials.Credentials, d databases, delegationKey string) (map[string]map[string]string, error) {
	brokerURL, redisURL := natsURL("platform", c.NATSToken), "redis://:"+d.Redis+"@redis:6379/0"
	databaseURL := "postgres://platform:" + d.Platform + "@postgres:5432/platform?sslmode=disable"
	trust, err := trustOf(delegationKey, "read", "write", "predict", "admin")
	if err != nil {
		return nil, err
	}
	assistantTrust, err := trustOf(delegationKey, "limits") // identifies a person, grants nothing
	if err != nil {
		return nil, err
	}
	controlPlaneMap, err := credentialMap(c)
	if err != nil {
		return nil, err
	}
	with := func(own map[string]string) map[string]string {
		own["PLATFORM_DATABASE_URL"], own["NATS_URL"], own["REDIS_URL"] = databaseURL, brokerURL, redisURL
		return own
	}
	return map[string]map[string]string{
		"postgres":      {"password": d.Postgres},
		"postgres-init": {"init.sql": initSQL(d)}, // a folder that the image runs once
		"redis":         {"redis.conf": "requirepass " + d.Redis + "\n"},
		"nats":          {"nats.conf": natsConf(c)},
		"tracker":       {"token": c.TrackerToken},
		"orchestrator": {
			"token":         c.OrchestratorKey,
			"profiles.toml": "active = \"stack\"\n[profiles.stack]\nPREFECT_SERVER_DATABASE_CONNECTION_URL = \"postgresql+asyncpg://orchestrator:" + d.Orchestrator + "@postgres:5432/orchestrator\"\n",
		},
		"worker": {
			"MLFLOW_TRACKING_TOKEN": c.TrackerToken, "CONTROL_PLANE_TOKEN": c.TrainerToken, "PREFECT_API_KEY": c.OrchestratorKey,
		},
		"control-plane": with(map[string]string{
			"CONTROL_PLANE_TOKEN": c.ControlPlaneToken, "CONTROL_PLANE_CREDENTIALS_JSON": controlPlaneMap,
			"DELEGATION_TRUST_JSON": trust, "SERVING_TOKEN": c.ServingControlPlaneToken, "MLFLOW_TRACKING_TOKEN": c.TrackerToken,
			"PREFECT_API_KEY": c.OrchestratorKey, "MODELREPO_WEBHOOK_SECRET": c.WebhookSecret,
		}),
		"inference": with(map[string]string{
			"INFERENCE_CREDENTIALS_JSON": c.InferenceMap(), "DELEGATION_TRUST_JSON": trust,
			"CONTROL_PLANE_TOKEN": c.InferenceToken, "MLFLOW_TRACKING_TOKEN": c.TrackerToken,
		}),
		"bus-bridge": {
			"BUS_NATS_URL": natsURL(credentials.BridgeUser, c.BridgePassword), "BUS_CREDENTIALS_JSON": c.BusMap(),
			"SERVING_TOKEN": c.BusServingToken, "CONTROL_PLANE_TOKEN": c.BusControlPlaneToken,
		},
		"assistant": with(map[string]string{
			"ASSISTANT_ADMIN_KEYS": c.AssistantAdminKey(), "ASSISTANT_OPERATOR_KEYS": c.AssistantOperatorKey(),
			"ASSISTANT_READONLY_KEYS": c.AssistantReadonlyKey(), "DELEGATION_TRUST_JSON": assistantTrust,
		}),
		"dashboard": with(map[string]string{
			"DASHBOARD_ADMIN_PASSWORD": c.DashboardAdmin, "DASHBOARD_VIEWER_PASSWORD": c.DashboardViewer,
			"DASHBOARD_JWT_SECRET": c.DashboardSigning, "DASHBOARD_SECRET_KEY": c.DashboardSecretKey(),
			"ASSISTANT_READONLY_KEY": c.AssistantReadonlyKey(), "ASSISTANT_OPERATOR_KEY": c.AssistantOperatorKey(),
			"MLFLOW_TRACKING_TOKEN": c.TrackerToken, "PREFECT_API_KEY": c.OrchestratorKey,
		}),
		"evidence-api": {"SVC_CONTROL_TOWER_TOKEN": c.EvidenceToken},
	}, nil
}

func natsURL(user, password string) string { return "nats://" + user + ":" + password + "@nats:4222" }

// The subjects of the message bus. Producers send requests and the bridge answers them.
var (
	busRequests = []string{"bus.infer.*", "bus.vector.*", "bus.retrain", "bus.jobs"}
	busReplies  = []string{"_INBOX.>", "bus.results"}
)

// natsConf is the broker's configuration. Producers and the bridge have a separate account with only the bus: the
// bridge publishes to the reply subject that a producer chooses, and all clients' replies share one prefix.
func natsConf(c credentials.Credentials) string {
	user := func(name, password string, publish, subscribe []string) string {
		return fmt.Sprintf("      { user: %q, password: %q, permissions: { publish: [%s], subscribe: [%s] } }\n",
			name, password, `"`+strings.Join(publish, `", "`)+`"`, `"`+strings.Join(subscribe, `", "`)+`"`)
	}
	return "accounts {\n  PLATFORM: { jetstream: enabled, users: [ " +
		fmt.Sprintf("{ user: %q, password: %q }", "platform", c.NATSToken) + " ] }\n  BUS: {\n    users: [\n" +
		user(credentials.BusUser, c.BusPassword, busRequests, busReplies) +
		user(credentials.BridgeUser, c.BridgePassword, busReplies, busRequests) +
		"    ]\n  }\n}\njetstream { store_dir: \"/data\", max_file: 4G }\nhttp: 8222\nmax_payload: 1MB\n"
}

// initSQL gives the platform and the orchestrator a database each; neither is a superuser.
func initSQL(d databases) string {
	return "CREATE ROLE platform LOGIN PASSWORD '" + d.Platform + "';\nCREATE DATABASE platform OWNER platform;\n" +
		"CREATE ROLE orchestrator LOGIN PASSWORD '" + d.Orchestrator + "';\nCREATE DATABASE orchestrator OWNER orchestrator;\n"
}

func trustOf(publicKey string, scopes ...string) (string, error) {
	text, err := json.Marshal(map[string]any{"dashboard": map[string]any{
		"public_key": publicKey, "tenants": []string{auth.LegacyTenant}, "scopes": scopes,
	}})
	return string(text), err
}

// credentialMap is the control plane's map of credentials. A variable cannot set the platform's reserved names, so the
// trainer, the inference service and the bus bridge have plain ones here.
func credentialMap(c credentials.Credentials) (string, error) {
	type grant struct {
		Principal string   `json:"principal"`
		Tenant    string   `json:"tenant"`
		Scopes    []string `json:"scopes"`
	}
	text, err := json.Marshal(map[string]grant{
		c.CIToken:        {"ci", auth.LegacyTenant, []string{"read", "changes"}},
		c.OperatorToken:  {"operator", auth.LegacyTenant, []string{"read", "write"}},
		c.TrainerToken:   {"trainer", auth.LegacyTenant, []string{"read", "manage"}},
		c.InferenceToken: {"inference", auth.PlatformTenant, []string{"read"}}, // it serves the models of every tenant

		c.BusControlPlaneToken: {"bus-bridge", auth.LegacyTenant, []string{"retrain"}},
	})
	return string(text), err
}

// loadDatabases reads the passwords of the data services, and creates the missing ones.
func loadDatabases(dir string) (databases, error) {
	path := filepath.Join(dir, databasesFile)
	var d databases
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return d, fmt.Errorf("read the data services' secrets: %w", err)
	default:
		if err := json.Unmarshal(text, &d); err != nil {
			return d, fmt.Errorf("%s is damaged: mend it, or delete it together with the volumes", databasesFile)
		}
	}
	added := false
	for _, s := range []*string{&d.Postgres, &d.Platform, &d.Orchestrator, &d.Redis, &d.Replication, &d.Failover, &d.Routes} {
		if *s == "" {
			*s, added = rand.Text()+rand.Text(), true
		}
	}
	if !added {
		return d, nil
	}
	if text, err = json.MarshalIndent(d, "", "  "); err != nil {
		return d, fmt.Errorf("encode the data services' secrets: %w", err)
	}
	if err := renameio.WriteFile(path, append(text, '\n'), 0o600, renameio.WithStaticPermissions(0o600)); err != nil {
		return d, fmt.Errorf("write the data services' secrets: %w", err)
	}
	return d, nil
}

// checkStrength refuses user-supplied secrets that others can guess. It names every one of them.
func checkStrength(c credentials.Credentials, d databases) error {
	var faults []error
	for file, secrets := range map[string]any{credentials.File: c, databasesFile: d} {
		text, err := json.Marshal(secrets)
		if err != nil {
			return fmt.Errorf("check the secrets: %w", err)
		}
		named := map[string]string{}
		if err := json.Unmarshal(text, &named); err != nil {
			return fmt.Errorf("check the secrets: %w", err)
		}
		for name, value := range named {
			if err := service.CheckSecret(name+" in "+file, service.Secret(value)); err != nil {
				faults = append(faults, err)
			} else if len(value) < minSecret || !plain(value) {
				faults = append(faults, fmt.Errorf("%s in %s must be %d or more letters and digits; delete the member, and a new one is made", name, file, minSecret))
			}
		}
	}
	return errors.Join(faults...)
}

// plain reports whether s needs no quoting in a URL, in SQL and in a configuration file.
func plain(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return true
}

func makeOwned(dir string, owner int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder of secrets: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { // made by the engine for a mount
		return fmt.Errorf("close a folder of secrets: %w", err)
	}
	return own(dir, owner)
}

func writeOwned(path, content string, owner int) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == content {
		return own(path, owner)
	}
	if err := renameio.WriteFile(path, []byte(content), 0o600, renameio.WithStaticPermissions(0o600)); err != nil {
		return fmt.Errorf("write a secret: %w", err)
	}
	return own(path, owner)
}

// own gives path to the user of the container that reads it; only root can, and elsewhere there is one user anyway.
func own(path string, owner int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if err := os.Chown(path, owner, owner); err != nil {
		return fmt.Errorf("hand over a secret: %w", err)
	}
	return nil
}

// MakeEvidence makes an empty evidence store in dir, or brings the one that is there up to date.
func MakeEvidence(ctx context.Context, dir string, now store.WriterOptions) error {
	path := filepath.Join(dir, "store.sqlite")
	if err := store.Create(ctx, path, now); err != nil {
		return fmt.Errorf("make the evidence store: %w", err)
	}
	for _, p := range []string{dir, path} {
		if err := own(p, serviceUser); err != nil {
			return err
		}
	}
	return nil
}
