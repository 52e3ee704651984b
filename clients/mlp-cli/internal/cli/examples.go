package cli

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// examples are shown in each command's help and in docs/mlp.md.
var examples = map[string]string{
	"status":                     "mlp status --watch",
	"models list":                "mlp models list --sort=-latest",
	"models info":                "mlp models info JPCP",
	"models diff":                "mlp models diff JPCP 1 Staging",
	"models lineage":             "mlp models lineage JPCP",
	"models cost":                "mlp models cost JPCP --record",
	"models history":             "mlp models history JPCP --alias Production",
	"models at":                  "mlp models at 2026-11-20T08:00:00Z",
	"models rollback":            "mlp models rollback JPCP --reason 'slow on large jobs'",
	"predict":                    "mlp predict JPCP --features @job.json",
	"retrain":                    "mlp retrain JPCP --dummy --follow",
	"approvals list":             "mlp approvals list --columns model,message,age",
	"approvals show":             "mlp approvals show JPCP",
	"approvals approve":          "mlp approvals approve JPCP --follow --reason 'better on large jobs'",
	"approvals reject":           "mlp approvals reject 0193b2c4-7d1e-7a52-9c3f-5e8b6a7d1f20 --reason 'wrong data'",
	"runs list":                  "mlp runs list --model JPCP --state failed",
	"runs show":                  "mlp runs show 0193b2c4-7d1e-7a52-9c3f-5e8b6a7d1f20 --follow",
	"runs logs":                  "mlp runs logs 0193b2c4-7d1e-7a52-9c3f-5e8b6a7d1f20 --follow",
	"runs cancel":                "mlp runs cancel 0193b2c4-7d1e-7a52-9c3f-5e8b6a7d1f20",
	"alerts list":                "mlp alerts list --watch",
	"alerts ack":                 "mlp alerts ack drift.JPCP",
	"costs":                      "mlp costs --by project --include-synthetic",
	"drift status":               "mlp drift status JPCP --plot",
	"drift baseline":             "mlp drift baseline JPCP --alias Canary",
	"drift reset":                "mlp drift reset JPCP",
	"drift auto-retrain enable":  "mlp drift auto-retrain enable JPCP --min-z 3.5 --cooldown 7200",
	"drift auto-retrain disable": "mlp drift auto-retrain disable JPCP",
	"drift auto-retrain status":  "mlp drift auto-retrain status",
	"drift trigger":              "mlp drift trigger --dry-run",
	"serve reload":               "mlp serve reload --model JPCP",
	"serve infer-check":          "mlp serve infer-check",
	"serve traffic":              "mlp serve traffic JPCP --production 90 --canary 10",
	"modelrepo status":           "mlp modelrepo status --watch",
	"modelrepo events":           "mlp modelrepo events -n 20",
	"modelrepo sync":             "mlp modelrepo sync",
	"modelrepo config":           "mlp modelrepo config --set poll_interval_seconds=60",
	"audit":                      "mlp audit --last 7d --model JPCP",
	"audit verify":               "mlp audit verify",
	"audit export":               "mlp audit export --last 30d --file audit.ndjson",
	"serve check":                "mlp serve check",
	"serve benchmark":            "mlp serve benchmark -n 2000 --max-p99-ms 20",
	"bus list":                   "mlp bus list",
	"bus init-uuids":             "mlp bus init-uuids --repo deploy/modelrepo",
	"bus regen-uuid":             "mlp bus regen-uuid JPCP",
	"bus status":                 "mlp bus status --watch",
	"scaffold":                   "mlp scaffold QueueTime --task performance_prediction --type regression",
	"pipeline list":              "mlp pipeline list --repo deploy/modelrepo",
	"pipeline validate":          "mlp pipeline validate",
	"pipeline validate-model":    "mlp pipeline validate-model JPCP --alias Canary --max-latency 0.2",
	"pipeline promote":           "mlp pipeline promote JPCP --if-rmse-lte 50 --dry-run",
	"pipeline run":               "mlp pipeline run --model JPCP --dummy --report report",
	"auth login":                 "mlp auth login",
	"auth whoami":                "mlp --json auth whoami",
	"auth logout":                "mlp auth logout",
	"auth validate":              "mlp auth validate",
	"guarded-changes list":       "mlp guarded-changes list --watch",
	"guarded-changes show":       "mlp guarded-changes show 0193b2c4-7d1e-7a52-9c3f-5e8b6a7d1f20",
	"guarded-changes approve":    "mlp guarded-changes approve 0193b2c4-7d1e-7a52-9c3f-5e8b6a7d1f20 --reason 'agreed in the review'",
	"guarded-changes reject":     "mlp guarded-changes reject 0193b2c4-7d1e-7a52-9c3f-5e8b6a7d1f20 --reason 'too lax'",
	"pipeline deploy":            "mlp pipeline deploy --env prod --dry-run",
	"pipeline export-registry":   "mlp pipeline export-registry --env prod --file registry.json",
	"chat":                       "mlp chat why is catalog in shop without traffic",
	"stack up":                   "mlp stack up",
	"stack down":                 "mlp stack down --volumes",
	"stack restart":              "mlp stack restart --service inference",
	"stack logs":                 "mlp stack logs --service control-plane --tail 200 --no-follow",
	"stack status":               "mlp --json stack status",
	"config show":                "mlp --context prod config show",
	"config set":                 "mlp config set serving https://inference.example",
	"config unset":               "mlp config unset serving",
	"config init":                "mlp config init",
	"config contexts":            "mlp config contexts",
	"config use":                 "mlp config use prod",
	"help":                       "mlp help models list",
	"version":                    "mlp version",
}

// addExample puts a command's example into its help.
func addExample(c *cli.Command, path string) {
	if example := examples[strings.TrimPrefix(path, "mlp ")]; example != "" {
		c.Description = "Example: " + example
	}
}
