package app

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/cli/invocation"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
	"github.com/mlp-platform/platform/services/standalone/internal/credentials"
	"github.com/mlp-platform/platform/services/standalone/internal/doctor"
	"github.com/mlp-platform/platform/services/standalone/internal/seed"
)

// ErrUnsound means that a check of the installation failed. The report says which.
var ErrUnsound = errors.New("a check failed")

// Doctor examines the installation that the environment configures and writes a report. It changes nothing. The error is
// ErrUnsound if a check failed.
func Doctor(ctx context.Context, environ []string, w io.Writer, asJSON bool) error {
	// A faulty variable is a finding. The other variables are read as far as possible.
	cfg, loadErr := readConfig(environ)
	p := &platform{cfg: cfg, begin: time.Now()}
	var err error
	if p.root, err = filepath.Abs(cfg.DataDir); err != nil {
		return fmt.Errorf("data directory %s: %w", cfg.DataDir, err)
	}
	p.repo = p.path("modelrepo")
	faults := splitErrors(loadErr)
	serviceFaults, auditKey := p.tryConfigs()
	report := doctor.Examine(ctx, doctor.Subject{
		DataDir: p.root, Environ: environ, Faults: append(faults, serviceFaults...), Addresses: p.doctorAddresses(),
		DatabaseURL: cfg.DatabaseURL, Schemas: allSchemas(), Keys: p.keyFiles(auditKey),
		Health:    func(ctx context.Context) error { return CheckHealth(ctx, cfg) },
		SeededErr: seed.CheckState,
		Typed:     invocation.Current(), Now: p.begin,
	})
	if asJSON {
		err = report.WriteJSON(w)
	} else {
		err = report.WriteText(w)
	}
	if err == nil && report.Status == doctor.Failed {
		err = ErrUnsound
	}
	return err
}

// splitErrors returns the errors that were joined.
func splitErrors(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// tryConfigs reads the services' configurations as a start does, with secrets that open nothing: whether those of the
// data directory can be used is a check of its own. It also returns the path of the ledger's key.
func (p *platform) tryConfigs() (faults []error, auditKey string) {
	p.creds = credentials.Placeholders()
	p.databaseURL, p.natsURL = p.cfg.DatabaseURL.Reveal(), "nats://"+p.cfg.NATSAddr
	if p.databaseURL == "" {
		p.databaseURL = "postgres:///platform"
	}
	delegator, err := auth.NewDelegator(delegationIssuer, base64.StdEncoding.EncodeToString(make([]byte, ed25519.SeedSize)))
	if err == nil {
		err = p.trustKey(delegator.PublicKey())
	}
	if err != nil {
		return []error{err}, ""
	}
	c, faults := p.configs()
	return faults, c.controlPlane.AuditKeyFile
}

func (p *platform) doctorAddresses() (list []doctor.Address) {
	for _, a := range p.cfg.addresses() {
		list = append(list, doctor.Address{Name: a.name, Variable: a.env, Addr: a.addr})
	}
	return list
}

// keyFiles are the keys in files of their own.
func (p *platform) keyFiles(auditKey string) []doctor.File {
	here := invocation.Current()
	delegation := p.path(delegationKeyFile)
	keys := []doctor.File{{Name: "delegation key", Path: delegation,
		Check: func(path string) error { _, err := auth.LoadDelegator(delegationIssuer, path); return err },
		Renew: here.Command("platform", "stop") + "; rm " + delegation + " && " + here.Command("platform")}}
	if auditKey != "" {
		keys = append(keys, doctor.File{Name: "ledger key", Path: auditKey, Check: controlplane.CheckAuditKey,
			Renew: here.Command("control-plane", "audit", "--help") + " # and see docs/audit-ledger.md"})
	}
	return keys
}
