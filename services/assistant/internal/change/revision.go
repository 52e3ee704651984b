package change

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// revisionKey is the annotation with the revision number of a replica set.
const revisionKey = "deployment.kubernetes.io/revision"

// maxRevisions limits what is read in one namespace to find the revisions of a workload.
const maxRevisions = 1000

// revision is an earlier state of a workload's template.
type revision struct {
	number int64
	ref    operation.Ref
	kept   unstructured.Unstructured
}

// revisions returns the revisions of a deployment, stateful set or daemon set, oldest first;
// other kinds keep none.
func (s *Service) revisions(ctx context.Context, live *unstructured.Unstructured, ref operation.Ref) ([]revision, error) {
	kind := "controllerrevisions.v1.apps"
	switch {
	case ref.Group != "apps":
		return nil, nil
	case ref.Kind == "Deployment":
		kind = "replicasets.v1.apps"
	case ref.Kind != "StatefulSet" && ref.Kind != "DaemonSet":
		return nil, nil
	}
	r, err := s.Cluster.Resolve(ctx, kind)
	if err != nil {
		return nil, err
	}
	found, err := s.list(ctx, r.Ref(ref.Namespace, ""), metav1.ListOptions{}, maxRevisions)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []revision
	for _, o := range found {
		if owner := metav1.GetControllerOf(&o); owner == nil || owner.UID != live.GetUID() {
			continue
		}
		n := numberAt(o.Object, "revision")
		if ref.Kind == "Deployment" {
			n, err = strconv.ParseInt(o.GetAnnotations()[revisionKey], 10, 64)
			if err != nil {
				continue // one that the controller has not numbered yet
			}
		}
		out = append(out, revision{n, r.Ref(ref.Namespace, o.GetName()), o})
	}
	slices.SortFunc(out, func(a, b revision) int { return int(a.number - b.number) })
	return out, nil
}

// undo replaces the current template by that of an earlier revision.
func (s *Service) undo(ctx context.Context, c *call, op operation.Operation) error {
	all, err := s.revisions(ctx, c.live, c.ref)
	if err != nil {
		return err
	}
	wanted, err := findRevision(c.ref, all, op.Revision)
	if err != nil {
		return err
	}
	if valueAt(c.live.Object, "spec", "paused") == true {
		return operation.Refuse(operation.InvalidArgument, "", "%s is paused; resume it before it is rolled back.", c.ref)
	}
	for _, r := range all {
		c.known = append(c.known, r.kept.Object)
	}
	c.kind, c.body = types.StrategicMergePatchType, rollbackPatch(c.ref, wanted)
	c.done, c.revision = fmt.Sprintf("rolled back to revision %d", wanted.number), wanted.number
	c.sources = []operation.Target{{Ref: wanted.ref, UID: string(wanted.kept.GetUID()), Fingerprint: fingerprintOf(wanted)}}
	return nil
}

// fingerprintOf identifies the contents of a revision. The generation of a replica set also
// counts its replicas, which are not taken over.
func fingerprintOf(r revision) string {
	held := object{"data": r.kept.Object["data"]}
	if r.ref.Kind == "ReplicaSet" {
		held = object{"template": valueAt(r.kept.Object, "spec", "template")}
	}
	return hashWanted(&unstructured.Unstructured{Object: held})
}

// findRevision finds a revision; 0 is the one before the current one.
func findRevision(ref operation.Ref, all []revision, number int64) (revision, error) {
	if ref.Group != "apps" || ref.Kind != "Deployment" && ref.Kind != "StatefulSet" && ref.Kind != "DaemonSet" {
		return revision{}, unsupportedKind(ref, "rolled back", "deployments, stateful sets and daemon sets")
	}
	if len(all) < 2 {
		return revision{}, operation.Refuse(operation.NotFound, "revision", "%s keeps no earlier revision to go back to.", ref)
	}
	if number == 0 {
		return all[len(all)-2], nil
	}
	i := slices.IndexFunc(all, func(r revision) bool { return r.number == number })
	if i < 0 {
		have := make([]string, len(all))
		for i, r := range all {
			have[i] = strconv.FormatInt(r.number, 10)
		}
		return revision{}, operation.Refuse(operation.NotFound, "revision", "%s keeps no revision %d; it has %s.", ref, number, strings.Join(have, ", "))
	}
	return all[i], nil
}

// rollbackPatch returns the strategic patch to a revision. Controller revisions contain it
// ready made.
func rollbackPatch(ref operation.Ref, r revision) object {
	if ref.Kind != "Deployment" {
		data, _ := r.kept.Object["data"].(object)
		return data
	}
	template, _ := valueAt(r.kept.Object, "spec", "template").(object)
	template = maps.Clone(template)
	if meta, ok := template["metadata"].(object); ok {
		meta = maps.Clone(meta)
		if labels, ok := meta["labels"].(object); ok {
			labels = maps.Clone(labels)
			delete(labels, appsv1.DefaultDeploymentUniqueLabelKey)
			meta["labels"] = labels
		}
		template["metadata"] = meta
	}
	template["$patch"] = "replace"
	return nestValue(template, "spec", "template")
}
