package cli

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// examples are shown in each command's help and in docs/mlp.md.
var examples = map[string]string{
	"status":            "mlp status --watch",
	"models list":       "mlp models list --sort=-latest",
	"models info":       "mlp models info JPCP",
	"predict":           "mlp predict JPCP --features @job.json",
	"retrain":           "mlp retrain JPCP --dummy --follow",
	"approvals list":    "mlp approvals list --columns model,message,age",
	"approvals show":    "mlp approvals show JPCP",
	"approvals approve": "mlp approvals approve JPCP --follow --reason 'better on large jobs'",
	"approvals reject":  "mlp approvals reject 0193b2c4-7d1e-7a52-9c3f-5e8b6a7d1f20 --reason 'wrong data'",
	"drift status":      "mlp drift status JPCP --plot",
	"drift baseline":    "mlp drift baseline JPCP --alias Canary",
	"serve check":       "mlp serve check",
	"serve benchmark":   "mlp serve benchmark -n 2000 --max-p99-ms 20",
	"pipeline list":     "mlp pipeline list --repo deploy/modelrepo",
	"pipeline validate": "mlp pipeline validate",
	"pipeline run":      "mlp pipeline run --model JPCP --dummy --report report",
	"config show":       "mlp --context prod config show",
	"config set":        "mlp config set serving https://inference.example",
	"config unset":      "mlp config unset serving",
	"config init":       "mlp config init",
	"config contexts":   "mlp config contexts",
	"config use":        "mlp config use prod",
	"help":              "mlp help models list",
	"version":           "mlp version",
}

// addExample puts a command's example into its help.
func addExample(c *cli.Command, path string) {
	if example := examples[strings.TrimPrefix(path, "mlp ")]; example != "" {
		c.Description = "Example: " + example
	}
}
