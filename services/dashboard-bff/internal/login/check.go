// Package login exchanges the two passwords for sessions, ends sessions and returns callers their identity.
package login

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
)

// Settings are the settings that the start-up check covers.
type Settings struct {
	Viewer, Admin        service.Secret // passwords
	JWTSecret, SecretKey service.Secret
	LocalLogin           bool
	Providers            bool // a trust file is configured
}

// Faults returns all reasons not to start with these settings. With password login off the passwords may be left out.
func (s Settings) Faults() []error {
	var faults []error
	for _, p := range []struct {
		name  string
		value service.Secret
	}{{"DASHBOARD_VIEWER_PASSWORD", s.Viewer}, {"DASHBOARD_ADMIN_PASSWORD", s.Admin}} {
		if p.value == "" && s.LocalLogin {
			faults = append(faults, fmt.Errorf("%s is not set; it grants the role to anyone who knows it", p.name))
		}
		if err := service.CheckSecret(p.name, p.value); err != nil {
			faults = append(faults, err)
		}
	}
	if s.Viewer != "" && equalSecrets(s.Viewer, s.Admin) {
		faults = append(faults, errors.New("DASHBOARD_VIEWER_PASSWORD and DASHBOARD_ADMIN_PASSWORD are equal; every viewer would be an admin"))
	}
	if err := service.CheckSecret("DASHBOARD_JWT_SECRET", s.JWTSecret); err != nil {
		faults = append(faults, err)
	} else if len(s.JWTSecret) < session.MinSecret {
		faults = append(faults, fmt.Errorf("DASHBOARD_JWT_SECRET has %d bytes; it must have at least %d, such as the output of openssl rand -hex 32",
			len(s.JWTSecret), session.MinSecret))
	}
	if _, err := sealing.ParseKeys(s.SecretKey); err != nil {
		faults = append(faults, err)
	}
	if !s.LocalLogin && !s.Providers {
		faults = append(faults, errors.New("DASHBOARD_LOCAL_LOGIN is false and PLATFORM_IAM_CONFIG is not set, so no one could sign in; set one of them"))
	}
	return faults
}

// equalSecrets compares digests in constant time: the time reveals neither where two secrets differ nor their lengths.
func equalSecrets(a, b service.Secret) bool {
	x, y := sha256.Sum256([]byte(a.Reveal())), sha256.Sum256([]byte(b.Reveal()))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
