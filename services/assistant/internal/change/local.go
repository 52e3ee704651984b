package change

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// errUndryable is the server's refusal of a dry run that says nothing about the call itself.
type errUndryable struct{ error }

func (e errUndryable) Unwrap() error { return e.error }

// cannotDryRun reports whether the server cannot dry-run a call, which does not mean that it
// refuses the call.
func cannotDryRun(err error) bool {
	var known errUndryable
	return errors.As(err, &known) || apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// absentNamespace reports whether a create failed because its namespace is missing.
func absentNamespace(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// computeLocally computes the result of a call where the server cannot: without the server's
// defaults and checks.
func computeLocally(c call) (object, error) {
	switch c.way {
	case creates, updates, recreates:
		return c.body, nil
	case removes, evicts:
		return nil, nil
	}
	before, err := json.Marshal(c.live.Object)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(c.body)
	if err != nil {
		return nil, err
	}
	var after []byte
	if c.kind == types.StrategicMergePatchType {
		shape, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(c.live.GetAPIVersion(), c.live.GetKind()))
		if err != nil {
			return nil, err
		}
		if after, err = strategicpatch.StrategicMergePatch(before, body, shape); err != nil {
			return nil, fmt.Errorf("work the patch out: %w", err)
		}
	} else if after, err = jsonpatch.MergePatch(before, body); err != nil {
		return nil, fmt.Errorf("work the patch out: %w", err)
	}
	var o object
	return o, utiljson.Unmarshal(after, &o)
}
