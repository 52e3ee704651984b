package settings

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/outbound"
)

// definition describes one key.
type definition struct {
	key         string
	kind        api.ConfigKeyType
	description string
	// called marks addresses that the dashboard itself calls: their host must be on the allow list.
	called bool
	// standard holds where neither table nor environment has a value.
	standard string
}

func (d definition) isSecret() bool { return d.kind == api.Secret }

// definitions of the fixed keys, in the order of the answers.
var definitions = []definition{
	{"tracker_url", api.Url, "Experiment tracker and model registry", true, "http://localhost:15000"},
	{"orchestrator_url", api.Url, "API of the workflow orchestrator", true, "http://localhost:14200/api"},
	{"serving_url", api.Url, "Inference API", true, "http://localhost:18001"},
	{"serving_dashboard_url", api.Url, "Pages of the serving runtime; without it the inference API", true, ""},
	{"metrics_store_url", api.Url, "Metrics store", true, ""},
	{"dashboards_url", api.Url, "Dashboards tool", true, ""},
	{"control_plane_url", api.Url, "Control plane API", true, "http://localhost:18002"},
	{"bus_url", api.Url, "Health address of the message-bus bridge", true, "http://localhost:18003"},
	{"object_store_url", api.Url, "Object store; shown and linked, never called", false, ""},
	{"object_store_console_url", api.Url, "Console of the object store; shown and linked, never called", false, ""},
	{"forge_url", api.Url, "Git hosting service; shown and linked, never called", false, ""},
	{"forge_project_id", api.Text, "Project of the model repository at the git hosting service", false, ""},
	{"scheduler_mode", api.Text, "Batch scheduler that training uses", false, "mock"},
	{"scheduler_partition", api.Text, "Default partition of the batch scheduler", false, ""},
	{"scheduler_time", api.Text, "Default time limit of batch jobs, such as 01:00:00", false, ""},
	{"object_store_access_key", api.Secret, "Access key of the object store", false, ""},
	{"object_store_secret_key", api.Secret, "Secret key of the object store", false, ""},
	{"dashboards_api_key", api.Secret, "Key that the proxy presents to the dashboards tool", false, ""},
	{"control_plane_token", api.Secret, "Token for a control plane that takes no delegation", false, ""},
	{"forge_token", api.Secret, "Token for the git hosting service's API", false, ""},
	{"forge_pipeline_token", api.Secret, "Token that triggers pipelines at the git hosting service", false, ""},
}

var definitionByKey = func() map[string]definition {
	out := make(map[string]definition, len(definitions))
	for _, d := range definitions {
		out[d.key] = d
	}
	return out
}()

// threshold keys exist for every model: the limit of its rmse.
var threshold = regexp.MustCompile(`^threshold_[a-z0-9][a-z0-9._-]{0,63}_rmse$`)

// decimal is the syntax of a threshold: a number that every client parses alike.
var decimal = regexp.MustCompile(`^[0-9]{1,15}(\.[0-9]{1,15})?$`)

// define looks a key up. Models are named in any case, so threshold keys are too; the definition has the one form.
func define(key string) (definition, bool) {
	if d, ok := definitionByKey[key]; ok {
		return d, true
	}
	if key = strings.ToLower(key); !threshold.MatchString(key) {
		return definition{}, false
	}
	model := strings.TrimSuffix(strings.TrimPrefix(key, "threshold_"), "_rmse")
	return definition{key: key, kind: api.Text, description: "Highest rmse that model " + strings.ToUpper(model) + " should show"}, true
}

// maxValue limits a value, in bytes.
const maxValue = 4096

// checkValue returns what is wrong with a value of the key; empty if nothing is. The text never holds the value.
func (d definition) checkValue(value string, hosts outbound.Hosts) string {
	switch {
	case value == "":
		return "must not be empty; send null to clear it"
	case len(value) > maxValue:
		return "must be at most 4,096 bytes"
	case strings.IndexFunc(value, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) >= 0:
		return "must be printable text on one line"
	case d.isSecret() && value == masked:
		return "is the mask shown for a secret, not a secret; leave the key out to keep it, send null to clear it"
	case d.kind == api.Url:
		return checkURL(value, d.called, hosts)
	case threshold.MatchString(d.key) && !decimal.MatchString(value):
		return "must be a decimal number such as 12.5"
	}
	return ""
}

// checkURL keeps out of the configuration what would carry a credential, run as a script when it is linked, or
// send the dashboard's own calls elsewhere.
func checkURL(value string, called bool, hosts outbound.Hosts) string {
	u, msg := outbound.ParseURL(value)
	switch {
	case msg != "":
		return msg
	case called && (u.RawQuery != "" || u.ForceQuery || u.Fragment != ""):
		return "must have no query and no fragment: paths are added to it"
	case called && !hosts.Allow(u):
		return "names a host and port that DASHBOARD_UPSTREAM_ALLOW does not list"
	}
	return ""
}
