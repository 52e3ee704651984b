package config

import "time"

const dashboardToken = "dashboard_token"

// Session is a sign-in at an identity provider, from which the dashboard token came and by which it is renewed.
type Session struct {
	Provider     string    `toml:"provider"`
	Issuer       string    `toml:"issuer"`
	ClientID     string    `toml:"client_id"`
	RefreshToken string    `toml:"refresh_token,omitempty"` // empty: the token cannot be renewed
	ExpiresAt    time.Time `toml:"expires_at"`
}

// Session returns the sign-in that the dashboard token in force came from, nil if it came otherwise; place is the
// context that holds it, empty for the base of the file.
func (r *Resolved) Session() (s *Session, place string) { return r.session, r.place }

// SetSession stores a token and the sign-in that it came from.
func (f *File) SetSession(context, token string, s Session) error {
	key, err := Find(dashboardToken)
	if err != nil {
		return err
	}
	if err := f.Set(key, context, token); err != nil {
		return err
	}
	if context == "" {
		f.Session = &s
	} else {
		f.Contexts[context].Session = &s
	}
	return nil
}
