package spine_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/evidencetest"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		is        func(string) bool
		good, bad []string
	}{
		"identifier": {spine.IsIdentifier,
			[]string{"a", "9", "run/demo:0001", "A.b_c:d/e-f", strings.Repeat("x", 192)},
			[]string{"", "-a", ".a", "/a", "_a", "a b", "a\n", "é", "a%", strings.Repeat("x", 193)}},
		"connection": {spine.IsConnectionID,
			[]string{"a", "9.x_y-z", strings.Repeat("x", 128)},
			[]string{"", "a/b", "a:b", "-a", "a\n", strings.Repeat("x", 129)}},
		"digest": {spine.IsDigest,
			[]string{fixture.Digest("0"), fixture.Digest("f")},
			[]string{"", strings.Repeat("0", 64), fixture.Digest("0") + "0", fixture.Digest("F"), fixture.Digest("g"), "sha512:" + strings.Repeat("0", 64), fixture.Digest("0") + "\n"}},
		"revision": {spine.IsRevision,
			[]string{strings.Repeat("a", 40), strings.Repeat("0", 64)},
			[]string{"", strings.Repeat("a", 39), strings.Repeat("a", 41), strings.Repeat("A", 40), strings.Repeat("g", 64)}},
		"timestamp": {spine.IsTimestamp,
			[]string{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.1Z", "2024-02-29T23:59:59.123456789Z"},
			[]string{"", "2026-01-02T03:04:05", "2026-01-02T03:04:05z", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05.1234567890Z",
				"2026-01-02T03:04:05,1Z", "2026-02-29T00:00:00Z", "2026-01-02T24:00:00Z", "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05.-1Z", "2026-01-02T3:04:005Z", "2026-01-02T03:04:05Z\n", "12026-01-02T03:04:05Z"}},
		"secret reference": {spine.IsSecretRef,
			[]string{"env:A", "env:_a9", "env:" + strings.Repeat("A", 128)},
			[]string{"", "env:", "env:9A", "env:A-B", "A", "env:" + strings.Repeat("A", 129)}},
	} {
		for _, s := range c.good {
			if !c.is(s) {
				t.Errorf("%q is no %s; want c.is(s)", s, name)
			}
		}
		for _, s := range c.bad {
			if c.is(s) {
				t.Errorf("%q is a %s; want !c.is(s)", s, name)
			}
		}
	}
}

func TestTimesAreBroughtToUTC(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-01-02T03:04:05Z": "2026-01-02T03:04:05Z", " 2026-01-02T05:04:05+02:00 ": "2026-01-02T03:04:05Z",
		"2026-01-02 03:04:05.250z": "2026-01-02T03:04:05.25Z", "2026-01-01T22:04-0500": "2026-01-02T03:04:00Z",
		"20260102T030405Z": "2026-01-02T03:04:05Z", "2026-01-02T03:04:05,5+00": "2026-01-02T03:04:05.5Z",
		"0001-01-01T00:00:00Z": "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z": "9999-12-31T23:59:59.999999999Z",
	} {
		at, err := spine.ParseTime(text)
		if err != nil || spine.FormatTime(at) != want || !spine.IsTimestamp(spine.FormatTime(at)) {
			t.Errorf("ParseTime(%q) = %v, %v; want %s", text, at, err, want)
		}
	}
	for _, text := range []string{"", "now", "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z", "1767323045", "2026-01-02T03:04:05 Europe/Paris", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00",
		"2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05-9900", "2026-01-02T03:04:05+05:60", "2026-01-02T03:04:05+0560", "20260102T0304+24", "2026-01-02T03:04:05.1234567890Z"} {
		var f *spine.Fault
		if at, err := spine.ParseTime(text); !errors.As(err, &f) || f.Code != "invalid_timestamp" {
			t.Errorf(`ParseTime(%q) = %v, %v; want errors.As(err, &f) && f.Code == "invalid_timestamp"`, text, at, err)
		}
	}
	if got := spine.FormatTime(time.Date(2026, 1, 2, 4, 4, 5, 0, time.FixedZone("", 3600))); got != "2026-01-02T03:04:05Z" {
		t.Error(got, `want "2026-01-02T03:04:05Z"`)
	}
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{" key 1\t": "key 1", strings.Repeat("é", 256): strings.Repeat("é", 256)} {
		if got, err := spine.IdempotencyKey(raw); err != nil || got != want {
			t.Errorf("IdempotencyKey(%q) = %q, %v; want got == want", raw, got, err)
		}
	}
	for _, raw := range []string{"", "  ", strings.Repeat("x", 257), "a\nb", "a\x00", "a\u0085b", "\xff"} {
		var f *spine.Fault
		if got, err := spine.IdempotencyKey(raw); !errors.As(err, &f) || f.Code != "invalid_idempotency_key" {
			t.Errorf(`IdempotencyKey(%q) = %q, %v; want errors.As(err, &f) && f.Code == "invalid_idempotency_key"`, raw, got, err)
		}
	}
}

func TestConnections(t *testing.T) {
	t.Parallel()
	for _, c := range fixture.Connections() {
		back, err := spine.ReadConnection(c.Value())
		if err != nil || canon.Digest(back) != canon.Digest(c) {
			t.Errorf("%s: %v; want canon.Digest(back) == canon.Digest(c)", c.ID, err)
		}
		if err := spine.CheckStorable(c.Value()); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		key  string
		v    canon.Value
		code string
		path string
	}{
		{"id", "a/b", spine.InvalidIdentifier, ""}, {"kind", "database", spine.InvalidKind, ""}, {"driver", "", spine.InvalidIdentifier, ""},
		{"enabled", canon.NewInt(1), spine.InvalidType, ""}, {"auth_ref_configured", "env:X", spine.InvalidType, ""},
		{"capability_tiers", "T0", spine.InvalidShape, ""}, {"tools", canon.Array{"git", "git"}, spine.InvalidValue, "/tools/1"},
		{"task_classes", canon.Array{""}, spine.InvalidValue, "/task_classes/0"}, {"candidate_types", canon.Array{nil}, spine.InvalidType, "/candidate_types/0"},
		{"max_risk", "none", spine.InvalidValue, ""}, {"external_processing", nil, spine.InvalidType, ""},
		{"project_spend_usd_max", canon.NewInt(0), spine.InvalidType, ""}, {"project_spend_usd_max", canon.Float(-0.5), spine.InvalidValue, ""},
		{"project_spend_usd_max", canon.Float(math.NaN()), spine.InvalidValue, ""}, {"project_spend_usd_max", canon.Float(math.Inf(1)), spine.InvalidValue, ""},
		{"max_concurrency", canon.NewInt(0), spine.InvalidValue, ""}, {"extra", true, spine.UnknownField, ""},
	} {
		o := fixture.Connections()[0].Value()
		o.Set(c.key, c.v)
		if c.path == "" {
			c.path = "/" + c.key
		}
		_, err := spine.ReadConnection(o)
		var f *spine.Fault
		if !errors.As(err, &f) || f.Code != c.code || f.Path != c.path {
			t.Errorf("%s = %v: %v; want %s at %s", c.key, c.v, err, c.code, c.path)
		}
	}
}

func TestNothingThatMayHoldASecretIsStored(t *testing.T) {
	t.Parallel()
	one := func(key string, v canon.Value) canon.Value { return canon.NewObject(canon.Member{Key: key, Value: v}) }
	for _, key := range []string{"api_key", "MyApiKey", "Authorization", "bearer_x", "client_secret", "credentials", "PASSWORD", "secret", "accessToken", "secret_ref"} {
		err := spine.CheckStorable(canon.Array{one("a", canon.Array{one(key, "hunter2")})})
		var f *spine.Fault
		if !errors.As(err, &f) || f.Code != spine.CredentialKey || f.Path != "/0/a/0/"+key || strings.Contains(err.Error(), "hunter2") {
			t.Errorf(`%s: %v; want errors.As(err, &f) && f.Code == spine.CredentialKey && f.Path == "/0/a/0/" + key && !strings.Contains(err.Error(), "hunter2")`, key, err)
		}
	}
	for _, ok := range []canon.Value{one("auth", one("secret_ref", "env:NAME")), one("db_Secret_Ref", "env:X"), one("auth_ref_configured", true), canon.Float(1), nil} {
		if err := spine.CheckStorable(ok); err != nil {
			t.Error(err)
		}
	}
	var f *spine.Fault
	if err := spine.CheckStorable(one("n", canon.Float(math.Inf(-1)))); !errors.As(err, &f) || f.Code != spine.InvalidValue || f.Path != "/n" {
		t.Error(err, `want errors.As(err, &f) && f.Code == spine.InvalidValue && f.Path == "/n"`)
	}
}

func TestWhatRunsAddUpTo(t *testing.T) {
	t.Parallel()
	one, two, three, four := fixture.Run(), importedRun(t), fixture.Run(), fixture.Run()
	three.RunID, three.WorkUnit.Version, three.WorkUnit.SourceRevision = "run/3", 2, strings.Repeat("4", 40)
	four.RunID, four.WorkUnit.ID, four.ProjectID = "run/4", "work/another", "project/other"
	five := one
	five.RunID, five.WorkUnit.Digest = "run/5", fixture.Digest("1")
	runs := []spine.Run{three, one, two, four, five}
	units := evidencetest.WorkUnits(runs)
	got, err := canon.C1(units)
	want := `[{"id":"work/another","revisions":[{"digest":"` + fixture.Digest("2") + `","run_count":1,"source_revision":"` + fixture.SourceRevision + `","version":1}],"run_count":1},` +
		`{"id":"work/demo-0001","revisions":[{"digest":"` + fixture.Digest("1") + `","run_count":1,"source_revision":"` + fixture.SourceRevision + `","version":1},` +
		`{"digest":"` + fixture.Digest("2") + `","run_count":2,"source_revision":"` + fixture.SourceRevision + `","version":1},` +
		`{"digest":"` + fixture.Digest("2") + `","run_count":1,"source_revision":"` + strings.Repeat("4", 40) + `","version":2}],"run_count":4}]`
	if err != nil || string(got) != want {
		t.Errorf("work units %s, %v\nwant %s", got, err, want)
	}
	p := evidencetest.ProjectOf(fixture.ProjectID, runs)
	if p.RunCount != 4 || p.WorkUnitCount != 1 || len(p.RunsByState) != 14 || p.RunsByState[spine.Proposed] != 3 || p.RunsByState[spine.AwaitingHumanDecision] != 1 {
		t.Errorf("project %+v; want p.RunCount == 4 && p.WorkUnitCount == 1 && len(p.RunsByState) == 14 && p.RunsByState[spine.Proposed] == 3 && p.RunsByState[spine.AwaitingHumanDecision] == 1", p)
	}
	if none := evidencetest.ProjectOf("project/none", runs); none.RunCount != 0 || len(none.RunsByState) != 14 {
		t.Errorf("project of no run %+v; want none.RunCount == 0 && len(none.RunsByState) == 14", none)
	}
	if len(evidencetest.WorkUnits(nil)) != 0 {
		t.Error("work units of nothing")
	}
}
