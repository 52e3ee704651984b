package app

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlp-platform/platform/services/assistant/internal/metrics"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

func testEnvironment(set map[string]string) []string {
	all := map[string]string{"PLATFORM_DATABASE_URL": "postgres://user@localhost/platform"}
	maps.Copy(all, set)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, name+"="+all[name])
	}
	return out
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c, err := LoadConfig(testEnvironment(nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]any{
		"ASSISTANT_ADDR":                 {c.Addr, "127.0.0.1:18004"},
		"AUTH_BACKEND":                   {c.AuthBackend, "static"},
		"DEMO_KEY_HMAC_SECRET":           {c.DemoSecret.Reveal(), ""},
		"DEMO_KEY_DEFAULT_TTL_HOURS":     {c.DemoDefaultHours, 168},
		"DEMO_KEY_MAX_TTL_HOURS":         {c.DemoMaxHours, 720},
		"ASSISTANT_APPROVAL_POLICY":      {c.ApprovalPolicy, "self"},
		"ASSISTANT_ACTION_TTL":           {c.ActionTTL, time.Hour},
		"ASSISTANT_PROTECTED_NAMESPACES": {fmt.Sprint(c.policy().Protected), "[kube-system kube-public kube-node-lease monitoring ingress-nginx cert-manager]"},
		"ASSISTANT_HIDDEN_NAMESPACES":    {len(c.HiddenNamespaces), 0},
		"ASSISTANT_ALLOWED_ORIGINS":      {len(c.AllowedOrigins), 0},
		"KUBECONFIG":                     {c.Kubeconfig, ""},
		"ASSISTANT_CONTEXTS":             {len(c.Contexts), 0},
		"ASSISTANT_CLUSTER_NAME":         {c.ClusterName, ""},
		"PROMETHEUS_URL":                 {c.PrometheusURL.Reveal(), ""},
		"LOKI_URL":                       {c.LokiURL.Reveal(), ""},
		"ASSISTANT_MCP_SERVERS":          {c.MCPServers, ""},
		"ASSISTANT_RUNBOOKS":             {c.Runbooks, ""},
		"ASSISTANT_MODEL_NAME":           {c.ModelName, "cluster-assistant"},
		"ASSISTANT_ENGINE":               {c.Engine, "auto"},
		"OPENAI_BASE_URL":                {c.OpenAIURL, ""},
		"OPENAI_API_KEY":                 {c.OpenAIKey.Reveal(), ""},
		"ASSISTANT_LLM_MODEL":            {c.LLMModel, ""},
		"ASSISTANT_LLM_CONTEXT_TOKENS":   {c.LLMContextTokens, 32768},
		"ASSISTANT_LLM_PROMPT_PRICE":     {c.LLMPromptPrice, 0.0},
		"ASSISTANT_LLM_ANSWER_PRICE":     {c.LLMAnswerPrice, 0.0},
		"ASSISTANT_BUDGET_COST":          {c.BudgetCost, 0.0},
		"ASSISTANT_BUDGET_TOKENS":        {c.BudgetTokens, 60000},
		"ASSISTANT_BUDGET_TOOL_CALLS":    {c.BudgetToolCalls, 40},
		"ASSISTANT_BUDGET_SECONDS":       {c.BudgetSeconds, 120},
		"ASSISTANT_TURN_TIMEOUT":         {c.TurnTimeout, 300 * time.Second},
		"ASSISTANT_ORPHAN_TIMEOUT":       {c.OrphanTimeout, 60 * time.Second},
		"ASSISTANT_VERIFY_TIMEOUT":       {c.VerifyTimeout, 60 * time.Second},
		"ASSISTANT_SESSION_TTL":          {c.SessionTTL, 720 * time.Hour},
		"ASSISTANT_MAX_BODY_BYTES":       {c.MaxBody, int64(1 << 20)},
		"ASSISTANT_RATE_PER_MIN":         {c.RatePerMinute, 120},
		"ASSISTANT_RATE_BURST":           {c.RateBurst, 30},
		"ASSISTANT_MAX_STREAMS":          {c.MaxStreams, 8},
		"engine":                         {c.engine(), "playbooks"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %v by default, want %v", name, pair[0], pair[1])
		}
	}
}

// Every fault is told at once, by the name of its variable, and no secret is quoted.
func TestFaults(t *testing.T) {
	t.Parallel()
	faulty := map[string]string{
		"PLATFORM_DATABASE_URL": "", "ASSISTANT_ADMIN_KEYS": "ki-op-hunter2hunter2", "AUTH_BACKEND": "ldap", "DEMO_KEY_DEFAULT_TTL_HOURS": "0",
		"DEMO_KEY_MAX_TTL_HOURS": "0", "ASSISTANT_APPROVAL_POLICY": "two", "ASSISTANT_ACTION_TTL": "0s",
		"ASSISTANT_PROTECTED_NAMESPACES": "kube_system", "ASSISTANT_HIDDEN_NAMESPACES": "Vault", "ASSISTANT_ALLOWED_ORIGINS": "https://a.example/path",
		"ASSISTANT_CLUSTER_NAME": "a\x01", "ASSISTANT_CLUSTER": "some", "PROMETHEUS_URL": "hunter2://x", "LOKI_URL": "x", "ASSISTANT_MODEL_NAME": "a b", "ASSISTANT_ENGINE": "magic",
		"OPENAI_BASE_URL": "ftp://x", "ASSISTANT_BUDGET_TOKENS": "1", "ASSISTANT_LLM_CONTEXT_TOKENS": "1", "ASSISTANT_LLM_PROMPT_PRICE": "-1", "ASSISTANT_LLM_ANSWER_PRICE": "NaN", "ASSISTANT_BUDGET_COST": "-1", "ASSISTANT_BUDGET_TOOL_CALLS": "0", "ASSISTANT_BUDGET_SECONDS": "0",
		"ASSISTANT_TURN_TIMEOUT": "1ms", "ASSISTANT_ORPHAN_TIMEOUT": "0s", "ASSISTANT_VERIFY_TIMEOUT": "1h", "ASSISTANT_SESSION_TTL": "1m",
		"ASSISTANT_MAX_BODY_BYTES": "1", "ASSISTANT_RATE_PER_MIN": "-1", "ASSISTANT_RATE_BURST": "0", "ASSISTANT_MAX_STREAMS": "0",
		"OPENAI_API_KEY": "changeme", "OTEL_EXPORTER_OTLP_ENDPOINT": "x",
	}
	_, err := LoadConfig(testEnvironment(faulty))
	if err == nil {
		t.Fatal("accepted")
	}
	for name := range faulty {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not told of; want strings.Contains(err.Error(), name)", name)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf(`a secret is quoted: %v; want !strings.Contains(err.Error(), "hunter2")`, err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set  map[string]string
		want string // part of the error; empty: none
	}{
		"open on another address": {map[string]string{"ASSISTANT_ADDR": "0.0.0.0:18004"}, "no credentials are configured"},
		"keys on another address": {map[string]string{"ASSISTANT_ADDR": "0.0.0.0:18004", "ASSISTANT_ADMIN_KEYS": "ki-admin-0123456789abcdef"}, ""},
		"four eyes without keys":  {map[string]string{"ASSISTANT_APPROVAL_POLICY": "four-eyes"}, "four-eyes needs keys"},
		"four eyes":               {map[string]string{"ASSISTANT_APPROVAL_POLICY": "four-eyes", "ASSISTANT_ADMIN_KEYS": "ki-admin-0123456789abcdef"}, ""},
		"llm without endpoint":    {map[string]string{"ASSISTANT_ENGINE": "llm"}, "neither OPENAI_BASE_URL nor OPENAI_API_KEY"},
		"llm without model":       {map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "ASSISTANT_LLM_MODEL is not set"},
		"a cost without prices":   {map[string]string{"ASSISTANT_BUDGET_COST": "0.5"}, "neither ASSISTANT_LLM_PROMPT_PRICE"},
		"llm":                     {map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "ASSISTANT_LLM_MODEL": "small"}, ""},
		"playbooks in spite of":   {map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "ASSISTANT_ENGINE": "playbooks"}, ""},
		"bare prefix":             {map[string]string{"ASSISTANT_OPERATOR_KEYS": "ki-op-"}, "ASSISTANT_OPERATOR_KEYS"},
		"no limit":                {map[string]string{"ASSISTANT_RATE_PER_MIN": "0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := LoadConfig(testEnvironment(tc.set))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// Each fault of the names of clusters is told, and nothing that is for one cluster goes with several.
func TestContexts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],
"contexts":[{"name":"a","context":{"cluster":"c"}},{"name":"b","context":{"cluster":"c"}},{"name":"b c","context":{"cluster":"c"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		set  map[string]string
		want string // part of the error; empty: none
	}{
		"two":             {map[string]string{"KUBECONFIG": file, "ASSISTANT_CONTEXTS": "a, b"}, ""},
		"unknown":         {map[string]string{"KUBECONFIG": file, "ASSISTANT_CONTEXTS": "a,x"}, `has no context "x"; it has a, b, b c`},
		"twice":           {map[string]string{"KUBECONFIG": file, "ASSISTANT_CONTEXTS": "a,b,a"}, `ASSISTANT_CONTEXTS names "a" twice`},
		"no header":       {map[string]string{"KUBECONFIG": file, "ASSISTANT_CONTEXTS": "b c"}, "visible characters"},
		"no kubeconfig":   {map[string]string{"ASSISTANT_CONTEXTS": "a"}, "KUBECONFIG must be too"},
		"no file":         {map[string]string{"KUBECONFIG": file + "x", "ASSISTANT_CONTEXTS": "a"}, "does not exist or has no context"},
		"a sample":        {map[string]string{"KUBECONFIG": file, "ASSISTANT_CONTEXTS": "a", "ASSISTANT_CLUSTER": "sample"}, "ASSISTANT_CLUSTER must be empty"},
		"a recording":     {map[string]string{"KUBECONFIG": file, "ASSISTANT_CONTEXTS": "a", "ASSISTANT_CLUSTER": "recorded:/x"}, "ASSISTANT_CLUSTER must be empty"},
		"a name":          {map[string]string{"KUBECONFIG": file, "ASSISTANT_CONTEXTS": "a", "ASSISTANT_CLUSTER_NAME": "n"}, "ASSISTANT_CLUSTER_NAME must be empty"},
		"a metrics store": {map[string]string{"KUBECONFIG": file, "ASSISTANT_CONTEXTS": "a", "PROMETHEUS_URL": "http://127.0.0.1:1"}, "PROMETHEUS_URL must be empty"},
		"a log store":     {map[string]string{"KUBECONFIG": file, "ASSISTANT_CONTEXTS": "a", "LOKI_URL": "http://127.0.0.1:1"}, "LOKI_URL must be empty"},
	} {
		_, err := LoadConfig(testEnvironment(row.set))
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
	}
}

func TestEngineChoice(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		set       map[string]string
		want, url string
	}{
		{nil, "playbooks", openAIURL},
		{map[string]string{"OPENAI_API_KEY": "sk-0123456789abcdef0123456789abcdef"}, "llm", openAIURL},
		{map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "llm", "http://127.0.0.1:1/v1"},
		{map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "ASSISTANT_ENGINE": "playbooks"}, "playbooks", "http://127.0.0.1:1/v1"},
	} {
		set := map[string]string{"ASSISTANT_LLM_MODEL": "small"}
		maps.Copy(set, tc.set)
		c, err := LoadConfig(testEnvironment(set))
		if err != nil {
			t.Fatal(err)
		}
		if c.engine() != tc.want || c.baseURL() != tc.url {
			t.Errorf("%v: %s at %s; want c.engine() == tc.want && c.baseURL() == tc.url", tc.set, c.engine(), c.baseURL())
		}
	}
}

// An assistant without a cluster must not answer about one that it made up, unless it was told to.
func TestNoClusterIsRefusedUnlessTheSampleIsAskedFor(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"": "ASSISTANT_CLUSTER=sample", "sample": ""} {
		cfg, err := LoadConfig(testEnvironment(map[string]string{"ASSISTANT_CLUSTER": value}))
		if err != nil {
			t.Fatal(err)
		}
		servers, err := connectServers(t.Context(), cfg, store.Open(nil), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		c, err := connectClusters(t.Context(), cfg, clusterDeps{
			policy: cfg.policy(), servers: servers, counted: metrics.New(prometheus.NewRegistry(), cfg.engine()), log: slog.New(slog.DiscardHandler),
		})
		if err == nil {
			c.close()
		}
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("ASSISTANT_CLUSTER=%q: got %v, want %q", value, err, want)
		}
	}
}
