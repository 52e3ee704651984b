package connectors

import (
	"math"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// APIVersion is the api_version of every profile.
const APIVersion = "svc.io/v1alpha1"

// The codes of a profile's faults.
const (
	InvalidDocument        = "invalid_document"
	MissingField           = "missing_field"
	UnknownField           = "unknown_field"
	InlineSecretForbidden  = "inline_secret_forbidden"
	SecretRefOutsideAuth   = "secret_ref_outside_auth"
	UnsupportedAPIVersion  = "unsupported_api_version"
	InvalidIdentifier      = "invalid_identifier"
	UnknownConnectorKind   = "unknown_connector_kind"
	InvalidCapabilityTier  = "invalid_capability_tier"
	InvalidRisk            = "invalid_risk"
	NonMonotonicRiskPolicy = "non_monotonic_risk_policy"
	ConflictingField       = "conflicting_field"
	DuplicateValue         = "duplicate_value"
	DuplicateConnectionID  = "duplicate_connection_id"
	InvalidJSON            = "invalid_json"
	InvalidUTF8            = "invalid_utf8"
	ProfileReadError       = "profile_read_error"
	InvalidType            = "invalid_type"
	InvalidValue           = "invalid_value"
	InvalidFieldName       = "invalid_field_name"
)

// Codes are the words of a profile's list for the faults every closed document can have.
var Codes = closed.Codes{
	Missing: MissingField, Unknown: UnknownField, Root: InvalidDocument,
	Shape: InvalidType, Type: InvalidType, Value: InvalidValue,
}

// Tiers lists the tiers of capability from the lowest.
func Tiers() []string { return []string{"T0", "T1", "T2", "T3", "T4"} }

// Connector is one checked profile: the record that a store keeps of it, and the values
// that only routing needs.
type Connector struct {
	spine.Connection              // its lists are sorted
	Independence     Independence // the parties from which a review by this connector is not independent
}

// Independence names the families a connector belongs to; "" is unknown.
type Independence struct{ ProviderFamily, AgentFamily, ExecutionFamily string }

// Parse reads a document that is one profile or an array of profiles and returns the
// connectors by id. An error is a *closed.Fault with one of the codes above.
func Parse(document canon.Value) ([]Connector, error) {
	rd := closed.NewReader(Codes)
	checkNames(rd, document, "", false)
	profiles, paths := canon.Array{document}, []string{""}
	if list, ok := document.(canon.Array); ok {
		profiles, paths = list, nil
		for i := range list {
			paths = append(paths, canon.Element("", i))
		}
		if len(list) == 0 {
			rd.Fail(InvalidDocument, "", "the array holds no profile")
		}
	}
	out := make([]Connector, 0, len(profiles))
	seen := map[string]bool{}
	for i, v := range profiles {
		if !rd.OK() {
			break
		}
		if _, ok := v.(*canon.Object); !ok {
			rd.Fail(InvalidDocument, paths[i], "expected a connector profile, which is an object")
			break
		}
		c := readConnector(rd, v, paths[i])
		if rd.OK() && seen[c.ID] {
			rd.Fail(DuplicateConnectionID, canon.Pointer(paths[i], "id"), "another profile has this id")
		}
		seen[c.ID] = true
		out = append(out, c)
	}
	if f := rd.Fault(); f != nil {
		return nil, f
	}
	slices.SortFunc(out, func(a, b Connector) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func readConnector(rd *closed.Reader, v canon.Value, path string) Connector {
	o := rd.ObjectWith(v, path,
		[]string{"api_version", "id", "driver", "kind", "enabled"},
		[]string{"auth", "settings", "capabilities", "policy", "independence"})
	o.Match("api_version", UnsupportedAPIVersion, APIVersion, func(s string) bool { return s == APIVersion })
	c := Connector{Connection: spine.Connection{
		ID:      o.Match("id", InvalidIdentifier, "a letter or digit, then up to 127 of letters, digits and ._-", spine.IsConnectionID),
		Driver:  o.Match("driver", InvalidIdentifier, "a letter or digit, then up to 127 of letters, digits and ._-", spine.IsConnectionID),
		Kind:    o.OneOf("kind", UnknownConnectorKind, spine.ConnectionKinds()...),
		Enabled: o.Bool("enabled"),
	}}
	if o.Has("auth") {
		// What is no reference must be taken for the secret itself.
		o.Object("auth", "secret_ref").Match("secret_ref", InlineSecretForbidden, "env:NAME, the name of a variable of the environment,", spine.IsSecretRef)
		c.AuthRefConfigured = true
	}
	if o.Has("settings") {
		if _, ok := o.Value("settings").(*canon.Object); !ok {
			o.Fail(InvalidType, "settings", "expected an object")
		}
	}
	readCapabilities(rd, o, &c)
	readPolicy(rd, o, &c)
	if o.Has("independence") {
		i := o.ObjectWith("independence", nil, []string{"provider_family", "agent_family", "execution_family"})
		c.Independence = Independence{readFamily(i, "provider_family"), readFamily(i, "agent_family"), readFamily(i, "execution_family")}
	}
	return c
}

func readCapabilities(rd *closed.Reader, profile closed.Object, c *Connector) {
	c.CapabilityTiers, c.TaskClasses, c.Tools, c.CandidateTypes = []string{}, []string{}, []string{}, []string{}
	c.MaxRisk = spine.Risks()[0]
	if !profile.Has("capabilities") {
		return
	}
	o := profile.ObjectWith("capabilities", nil, []string{"tiers", "task_classes", "tools", "candidate_types", "max_risk"})
	c.CapabilityTiers = Words(rd, o, "tiers", InvalidCapabilityTier, Tiers())
	c.TaskClasses = Words(rd, o, "task_classes", InvalidValue, nil)
	c.Tools = Words(rd, o, "tools", InvalidValue, nil)
	c.CandidateTypes = Words(rd, o, "candidate_types", InvalidValue, nil)
	if o.Has("max_risk") {
		c.MaxRisk = o.OneOf("max_risk", InvalidRisk, spine.Risks()...)
	}
}

func readPolicy(rd *closed.Reader, profile closed.Object, c *Connector) {
	c.MaxConcurrency = 1
	if !profile.Has("policy") {
		return
	}
	o := profile.ObjectWith("policy", nil, []string{"task_classes", "allowed_risk", "external_processing", "project_spend_usd_max", "max_concurrency"})
	if o.Has("task_classes") {
		classes := Words(rd, o, "task_classes", InvalidValue, nil)
		if hasMember(profile, "capabilities", "task_classes") && !slices.Equal(classes, c.TaskClasses) {
			o.Fail(ConflictingField, "task_classes", "capabilities.task_classes names other classes")
		}
		c.TaskClasses = classes
	}
	if o.Has("allowed_risk") {
		allowed := readRisks(rd, o, "allowed_risk")
		if rd.OK() {
			highest := allowed[len(allowed)-1]
			if hasMember(profile, "capabilities", "max_risk") && highest != c.MaxRisk {
				o.Fail(ConflictingField, "allowed_risk", "the risks must end with capabilities.max_risk")
			}
			c.MaxRisk = highest
		}
	}
	c.ExternalProcessing = o.Has("external_processing") && o.Bool("external_processing")
	if o.Has("project_spend_usd_max") {
		c.ProjectSpendUSDMax = Dollars(o, "project_spend_usd_max")
	}
	if o.Has("max_concurrency") {
		c.MaxConcurrency = o.Int("max_concurrency", 1)
	}
}

// hasMember reports whether a profile has a key inside one of its optional objects.
func hasMember(profile closed.Object, part, key string) bool {
	o, _ := profile.Value(part).(*canon.Object)
	_, ok := o.Get(key)
	return ok
}

// readRisks reads the classes of risk that a policy allows: all from low to the highest.
// A gap would allow a risk and refuse a lower one.
func readRisks(rd *closed.Reader, o closed.Object, key string) []string {
	var out []string
	o.Array(key, 0, func(v canon.Value, path string) {
		s := rd.Match(v, path, InvalidRisk, "one of "+strings.Join(spine.Risks(), ", "), func(s string) bool { return slices.Contains(spine.Risks(), s) })
		if slices.Contains(out, s) {
			rd.Fail(DuplicateValue, path, "the risk occurs twice in the list")
		}
		out = append(out, s)
	})
	if rd.OK() && (len(out) == 0 || !slices.Equal(out, spine.Risks()[:len(out)])) {
		o.Fail(NonMonotonicRiskPolicy, key, "the risks must run from low upwards without a gap")
	}
	return out
}

// Words reads a list of distinct texts, sorted; allowed is nil where any text will do
// that is not blank. A missing list is empty.
func Words(rd *closed.Reader, o closed.Object, key, code string, allowed []string) []string {
	out := []string{}
	o.Array(key, 0, func(v canon.Value, path string) {
		s := rd.String(v, path)
		switch {
		case !rd.OK():
		case allowed != nil && !slices.Contains(allowed, s):
			rd.Fail(code, path, "expected one of %s", strings.Join(allowed, ", "))
		case strings.TrimSpace(s) == "":
			rd.Fail(code, path, "the text must not be blank")
		case slices.Contains(out, s):
			rd.Fail(DuplicateValue, path, "the text occurs twice in the list")
		}
		out = append(out, s)
	})
	slices.Sort(out)
	return out
}

// Dollars reads an amount of money, written with or without a point.
func Dollars(o closed.Object, key string) float64 {
	var f float64
	switch v := o.Value(key).(type) {
	case canon.Int:
		f, _ = v.Big().Float64()
	case canon.Float:
		f = float64(v)
	default:
		o.Fail(InvalidType, key, "expected a number")
	}
	if !(f >= 0) || math.IsInf(f, 0) {
		o.Fail(InvalidValue, key, "expected an amount of 0 or more")
		return 0
	}
	return f + 0 // of a minus zero, zero
}

func readFamily(o closed.Object, key string) string {
	if !o.Has(key) {
		return ""
	}
	return o.Match(key, InvalidValue, "a name that is not blank", func(s string) bool { return strings.TrimSpace(s) != "" })
}
