// Package doctor examines an installation of the one-process platform, running or stopped, also one that does not start.
// It writes nothing and needs no network. Each finding says what is wrong, where, and the command that mends it. What
// could not be examined is reported as not checked, never as ok.
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/cli/invocation"
	"github.com/mlp-platform/platform/libs/embedded/pg"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/standalone/internal/datadir"
)

// Status is the result of one check.
type Status string

// The results.
const (
	OK         Status = "ok"
	NotChecked Status = "not checked"
	Warning    Status = "warning"
	Failed     Status = "failed"
)

// Finding is one line of the report.
type Finding struct {
	Check  string `json:"check"` // stable, such as disk or port.tracker
	Status Status `json:"status"`
	Where  string `json:"where,omitempty"` // file, address or variable
	Detail string `json:"detail"`          // what is so, or why it was not checked
	Fix    string `json:"fix,omitempty"`   // the command that mends it
}

// Report is everything that was found.
type Report struct {
	Version string    `json:"version"`
	DataDir string    `json:"data_dir"`
	At      time.Time `json:"at"`
	// State is running, stopped, or absent if there is no data directory.
	State string `json:"state"`
	// Status is failed or warning if a finding is, else ok.
	Status   Status    `json:"status"`
	Findings []Finding `json:"findings"`
}

// Address is where a part of the platform listens.
type Address struct{ Name, Variable, Addr string }

// File is a secret in a file of its own. Check reports why it cannot be used.
type File struct {
	Name, Path string
	Check      func(path string) error
	Renew      string // the command that replaces it
}

// Subject is the installation as the environment configures it.
type Subject struct {
	DataDir string
	Environ []string
	// Faults are those of the variables, each with the name of the service that rejects it.
	Faults    []error
	Addresses []Address
	// DatabaseURL names a server other than the embedded one; empty: the embedded one.
	DatabaseURL service.Secret
	Schemas     []postgres.Schema
	// Keys are the keys that the platform keeps in files.
	Keys []File
	// Health queries the running platform: the error has a line for each service that is not ready.
	Health func(context.Context) error
	// SeededErr reads the record of the samples; nil without one.
	SeededErr func(path string) error
	// Typed says how this program was started.
	Typed invocation.Installation
	Now   time.Time
}

// examination is one run over a subject.
type examination struct {
	Subject
	dir    datadir.Inspection
	server pg.Inspection // zero with DatabaseURL
	report Report
}

// Examine runs every check.
func Examine(ctx context.Context, s Subject) Report {
	e := &examination{Subject: s, report: Report{Version: service.Version, DataDir: s.DataDir, At: s.Now.UTC().Truncate(time.Second), Findings: []Finding{}}}
	e.checkProgram()
	e.checkVariables()
	e.checkRuntime()
	e.checkClock()
	if e.checkDirectory() {
		if s.DatabaseURL == "" {
			e.server = pg.Inspect(ctx, e.path("postgres"), e.path("cache", "postgres"))
		}
		e.checkDisk()
		e.checkLeftovers()
		e.checkRecords()
		e.checkSecrets()
		e.checkAges()
		e.checkPostgres()
		e.checkVersions(ctx)
		e.checkContent()
		e.checkBackup()
	}
	e.checkPorts()
	e.checkHealth(ctx)
	e.checkCertificates()
	e.checkSignOn()
	e.report.Status = OK
	for _, f := range e.report.Findings {
		if f.Status == Failed || f.Status == Warning && e.report.Status == OK {
			e.report.Status = f.Status
		}
	}
	return e.report
}

func (e *examination) add(f Finding) { e.report.Findings = append(e.report.Findings, f) }

func (e *examination) ok(check, where, format string, a ...any) {
	e.add(Finding{Check: check, Status: OK, Where: where, Detail: fmt.Sprintf(format, a...)})
}

func (e *examination) notChecked(check, where, format string, a ...any) {
	e.add(Finding{Check: check, Status: NotChecked, Where: where, Detail: fmt.Sprintf(format, a...)})
}

func (e *examination) warn(check, where, fix, format string, a ...any) {
	e.add(Finding{Check: check, Status: Warning, Where: where, Detail: fmt.Sprintf(format, a...), Fix: fix})
}

func (e *examination) fail(check, where, fix, format string, a ...any) {
	e.add(Finding{Check: check, Status: Failed, Where: where, Detail: fmt.Sprintf(format, a...), Fix: fix})
}

// platform is a command of this program on this data directory.
func (e *examination) platform(args ...string) string { return e.Typed.Command("platform", args...) }

// restart ends the platform if one runs, carries out the commands, and starts the platform.
func (e *examination) restart(commands ...string) string {
	if e.dir.Held {
		commands = slices.Insert(commands, 0, e.platform("stop"))
	}
	return strings.Join(append(commands, e.platform()), " && ")
}

// WriteJSON writes the report as one JSON document.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // commands have && in them
	return enc.Encode(r)
}

// WriteText writes a line for each finding, the worst last, since a terminal shows the end.
func (r Report) WriteText(w io.Writer) error {
	findings := slices.Clone(r.Findings)
	order := []Status{OK, NotChecked, Warning, Failed}
	slices.SortStableFunc(findings, func(a, b Finding) int { return slices.Index(order, a.Status) - slices.Index(order, b.Status) })
	count := map[Status]int{}
	for _, f := range findings {
		count[f.Status]++
		where := ""
		if f.Where != "" {
			where = f.Where + ": "
		}
		if _, err := fmt.Fprintf(w, "%-11s  %-22s  %s%s\n", f.Status, f.Check, where, f.Detail); err != nil {
			return err
		}
		if f.Fix != "" {
			if _, err := fmt.Fprintf(w, "%-11s  %-22s  mend it with: %s\n", "", "", f.Fix); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(w, "\nplatform %s, data in %s (%s): %d failed, %d warnings, %d not checked, %d ok\n",
		r.Version, r.DataDir, r.State, count[Failed], count[Warning], count[NotChecked], count[OK])
	return err
}
