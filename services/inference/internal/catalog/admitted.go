package catalog

import (
	"context"
	"fmt"
	"maps"

	"github.com/mlp-platform/platform/services/inference/internal/admission"
	"github.com/mlp-platform/platform/services/inference/internal/artifact"
)

// Admissions returns the versions that may serve Production, by upper-case model name.
type Admissions interface {
	Admitted(ctx context.Context) map[string]admission.Admission
}

// admit replaces the versions of the tracker's Production aliases with the admitted ones, and reports each alias that
// names another. An alias that was removed keeps its admitted version. names are the tracker's names of the models
// read: all of them if only is empty.
func (c *Catalog) admit(ctx context.Context, wants []want, names map[string]string, only string) []want {
	if c.cfg.Admissions == nil {
		return wants
	}
	admitted := c.cfg.Admissions.Admitted(ctx)
	out := make([]want, 0, len(wants))
	named := map[string]string{} // versions of the tracker's Production aliases
	for _, w := range wants {
		if w.alias != Production {
			out = append(out, w)
			continue
		}
		named[w.model] = w.version
		names[w.model] = w.tracker // of two that differ in case, the one that counts
	}
	for model, name := range names {
		a, ok := admitted[model]
		if ok {
			out = append(out, want{place: place{model, Production}, tracker: name, version: a.Version, digest: a.Digest})
		}
		c.notAdmitted(place{model, Production}, named[model], a.Version)
	}
	if only == "" {
		c.mu.Lock()
		maps.DeleteFunc(c.unadmitted, func(p place, _ Failure) bool { return names[p.model] == "" })
		c.mu.Unlock()
	}
	return out
}

// notAdmitted remembers that an alias names a version which is not admitted. Health shows it; it is no failed load:
// the control plane puts the alias back, or is just about to admit the version.
func (c *Catalog) notAdmitted(p place, named, admitted string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if named == "" || named == admitted {
		delete(c.unadmitted, p)
		return
	}
	c.unadmitted[p] = Failure{p.model, p.alias, named, fmt.Sprintf(
		"%s: the tracker's alias names version %s, which the control plane has not admitted; REQUIRE_GATE is set", "not_admitted", named)}
}

// checkAdmitted compares a copy with the digest that was admitted: the tag at the tracker may have changed since.
func checkAdmitted(w want, cp *Copy) error {
	return compareDigest(w, cp.Digest)
}

func compareDigest(w want, digest string) error {
	if w.digest != "" && digest != w.digest {
		return fmt.Errorf("%w: version %s has files with digest %s, and %s was admitted", artifact.ErrDigest, w.version, digest, w.digest)
	}
	return nil
}

// refuseDigest is why no alias that names the version may have these files; nil if one may, or if none names it. To open
// a version may start its Python code, so this is asked before that.
func (c *Catalog) refuseDigest(k rawKey, digest string) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, wants := range []map[place]want{c.desired, c.lazy} {
		for _, w := range wants {
			if w.key() != k {
				continue
			}
			if err = compareDigest(w, digest); err == nil {
				return nil
			}
		}
	}
	return err
}
