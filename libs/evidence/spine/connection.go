package spine

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// Connection is a connector as it is stored and shown: its capabilities, never how to
// reach it. Lists hold unique texts.
type Connection struct {
	ID                 string   `json:"id"`
	Kind               string   `json:"kind"` // one of ConnectionKinds
	Driver             string   `json:"driver"`
	Enabled            bool     `json:"enabled"`
	AuthRefConfigured  bool     `json:"auth_ref_configured"`
	CapabilityTiers    []string `json:"capability_tiers"`
	TaskClasses        []string `json:"task_classes"`
	Tools              []string `json:"tools"`
	CandidateTypes     []string `json:"candidate_types"`
	MaxRisk            string   `json:"max_risk"` // one of Risks
	ExternalProcessing bool     `json:"external_processing"`
	ProjectSpendUSDMax float64  `json:"project_spend_usd_max"` // US dollars, 0 or more
	MaxConcurrency     int64    `json:"max_concurrency"`       // 1 or more
}

// ConnectionKinds lists the kinds of systems that a connector can connect to.
func ConnectionKinds() []string { return []string{"scm", "agent", "model", "execution"} }

// Risks lists the classes of risk from the lowest.
func Risks() []string { return []string{"low", "medium", "high", "critical"} }

// ReadConnection reads a connector record: exactly these keys, each of its type. A
// fault is a *Fault.
func ReadConnection(v canon.Value) (Connection, error) {
	rd := closed.NewReader(projectionCodes)
	o := rd.Root(v, "id", "kind", "driver", "enabled", "auth_ref_configured", "capability_tiers", "task_classes", "tools",
		"candidate_types", "max_risk", "external_processing", "project_spend_usd_max", "max_concurrency")
	c := Connection{
		ID:                 o.Match("id", InvalidIdentifier, "a connection id", IsConnectionID),
		Kind:               o.OneOf("kind", InvalidKind, ConnectionKinds()...),
		Driver:             o.Match("driver", InvalidIdentifier, "a driver's name", IsConnectionID),
		Enabled:            o.Bool("enabled"),
		AuthRefConfigured:  o.Bool("auth_ref_configured"),
		CapabilityTiers:    readTexts(rd, o, "capability_tiers"),
		TaskClasses:        readTexts(rd, o, "task_classes"),
		Tools:              readTexts(rd, o, "tools"),
		CandidateTypes:     readTexts(rd, o, "candidate_types"),
		MaxRisk:            o.OneOf("max_risk", InvalidValue, Risks()...),
		ExternalProcessing: o.Bool("external_processing"),
		MaxConcurrency:     o.Int("max_concurrency", 1),
	}
	if v := o.Value("project_spend_usd_max"); rd.OK() {
		f, ok := v.(canon.Float)
		switch {
		case !ok:
			o.Fail(InvalidType, "project_spend_usd_max", "expected a number with a point")
		case !(f >= 0) || math.IsInf(float64(f), 0):
			o.Fail(InvalidValue, "project_spend_usd_max", "expected a finite number of 0.0 or more")
		}
		c.ProjectSpendUSDMax = float64(f)
	}
	if f := rd.Fault(); f != nil {
		return Connection{}, f
	}
	return c, nil
}

func readTexts(rd *closed.Reader, o closed.Object, key string) []string {
	out := []string{}
	o.Array(key, 0, func(v canon.Value, path string) {
		s := rd.Text(v, path)
		if slices.Contains(out, s) {
			rd.Fail(InvalidValue, path, "the text occurs twice in the list")
		}
		out = append(out, s)
	})
	return out
}

// Value returns the connector as a document.
func (c Connection) Value() *canon.Object { return canon.MustFrom(c).(*canon.Object) }

// CredentialKey is the fault of a key that is named like a secret.
const CredentialKey = "credential_key"

var credentialWords = []string{
	"api_key", "apikey", "authorization", "bearer", "client_secret", "credential", "password", "secret", "token",
}

// CheckStorable refuses values that no store may keep, at any depth: a key whose name
// indicates a secret, unless it ends in secret_ref and only names a variable of the
// environment (env:NAME), and a number that is not finite. A fault is a *Fault with the
// code credential_key or invalid_value; the value is never quoted.
func CheckStorable(v canon.Value) error {
	if f := checkStorable(v); f != nil {
		return f
	}
	return nil
}

func checkStorable(v canon.Value) *Fault {
	inside := func(token string, f *Fault) *Fault {
		f.Path = canon.Pointer("", token) + f.Path
		return f
	}
	switch v := v.(type) {
	case canon.Float:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return &Fault{Code: InvalidValue, Detail: "the number is not finite"}
		}
	case canon.Array:
		for i, e := range v {
			if f := checkStorable(e); f != nil {
				return inside(strconv.Itoa(i), f)
			}
		}
	case *canon.Object:
		for key, e := range v.All() {
			if IsCredentialKey(key) && !isSecretRef(key, e) {
				return inside(key, &Fault{Code: CredentialKey, Detail: "a key of this name may hold a secret and is never stored"})
			}
			if f := checkStorable(e); f != nil {
				return inside(key, f)
			}
		}
	}
	return nil
}

// IsCredentialKey reports whether a key's name indicates a secret: its lower-cased name
// contains api_key, authorization, password, token or another such word.
func IsCredentialKey(key string) bool {
	lower := strings.ToLower(key)
	return slices.ContainsFunc(credentialWords, func(w string) bool { return strings.Contains(lower, w) })
}

func isSecretRef(key string, v canon.Value) bool {
	ref, ok := v.(string)
	return ok && strings.HasSuffix(strings.ToLower(key), "secret_ref") && IsSecretRef(ref)
}

// IsSecretRef reports whether s names a variable of the environment: env:NAME, the name up
// to 128 of letters, digits and _, no digit first.
func IsSecretRef(s string) bool {
	name, ok := strings.CutPrefix(s, "env:")
	if !ok || name == "" || len(name) > 128 || '0' <= name[0] && name[0] <= '9' {
		return false
	}
	for i := range len(name) {
		if !isAlnum(name[i]) && name[i] != '_' {
			return false
		}
	}
	return true
}
