package change

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// fromSource prepares an object that is created from another one.
func (s *Service) fromSource(ctx context.Context, op operation.Operation, ref operation.Ref) (call, error) {
	c := call{way: creates, ref: ref, done: "created"}
	named := op.Objects()
	if len(named) != 1 {
		return c, operation.Refuse(operation.InvalidArgument, "names", "%s takes one object at a time.", op.Verb)
	}
	r, err := s.Cluster.Resolve(ctx, named[0].Kind)
	if err != nil {
		return c, err
	}
	from := r.Ref(op.Namespace, named[0].Name)
	live, err := s.read(ctx, from)
	if err != nil {
		return c, err
	}
	c.sources, c.known = []operation.Target{newTarget(from, live)}, []object{live.Object}
	meta := object{"name": ref.Name, "namespace": ref.Namespace}
	c.body = object{"apiVersion": strings.TrimPrefix(ref.Group+"/"+ref.Version, "/"), "kind": ref.Kind, "metadata": meta}
	switch op.Verb {
	case operation.RunJob:
		err = jobOf(&c, from, live.Object, meta)
	case operation.Expose:
		err = serviceOf(&c, op, from, live.Object, meta)
	case operation.Autoscale:
		err = s.autoscalerOf(ctx, &c, op, from)
	}
	return c, err
}

// jobOf builds the job that a cron job would create now.
func jobOf(c *call, from operation.Ref, cron, meta object) error {
	if from.Group != "batch" || from.Kind != "CronJob" {
		return unsupportedKind(from, "run as a job", "cron jobs")
	}
	template, _ := valueAt(cron, "spec", "jobTemplate").(object)
	if template == nil {
		return operation.Refuse(operation.InvalidArgument, "", "%s has no job template.", from)
	}
	c.copyOf = template
	annotations := object{}
	if given, ok := valueAt(template, "metadata", "annotations").(object); ok {
		for k, v := range given {
			annotations[k] = v
		}
	}
	annotations["cronjob.kubernetes.io/instantiate"] = "manual"
	meta["annotations"] = annotations
	if labels := valueAt(template, "metadata", "labels"); labels != nil {
		meta["labels"] = labels
	}
	meta["ownerReferences"] = []any{object{
		"apiVersion": strings.TrimPrefix(from.Group+"/"+from.Version, "/"), "kind": from.Kind, "name": from.Name, "uid": c.sources[0].UID,
	}}
	c.body["spec"] = template["spec"]
	return nil
}

// serviceOf builds a service for the pods of a workload, of a pod or of another service.
func serviceOf(c *call, op operation.Operation, from operation.Ref, source, meta object) error {
	var selector any
	switch {
	case from.Group == "" && from.Kind == "Pod":
		selector = valueAt(source, "metadata", "labels")
	case from.Group == "" && (from.Kind == "Service" || from.Kind == "ReplicationController"):
		selector = valueAt(source, "spec", "selector")
	case from.Group == "apps":
		selector = valueAt(source, "spec", "selector", "matchLabels")
		if len(objectsAt(source, "spec", "selector", "matchExpressions")) > 0 {
			return operation.Refuse(operation.InvalidArgument, "", "%s chooses its pods by expressions, which a service cannot; create one from a manifest.", from)
		}
	default:
		return unsupportedKind(from, "exposed", "pods, services and the workloads of apps")
	}
	if labels, ok := selector.(object); !ok || len(labels) == 0 {
		return operation.Refuse(operation.InvalidArgument, "", "%s has no labels that a service could choose its pods by.", from)
	}
	if labels := valueAt(source, "metadata", "labels"); labels != nil {
		meta["labels"] = labels
	}
	port := object{"port": int64(op.Port), "protocol": cmp.Or(op.Protocol, "TCP"), "targetPort": int64(op.Port)}
	if op.TargetPort != "" {
		port["targetPort"] = op.TargetPort
		if n, err := strconv.ParseInt(op.TargetPort, 10, 32); err == nil {
			port["targetPort"] = n
		}
	}
	spec := object{"selector": selector, "ports": []any{port}}
	if op.ServiceType != "" {
		spec["type"] = op.ServiceType
	}
	c.body["spec"] = spec
	return nil
}

func (s *Service) autoscalerOf(ctx context.Context, c *call, op operation.Operation, from operation.Ref) error {
	r, err := s.resource(ctx, from)
	if err != nil {
		return err
	}
	if !r.Subresources["scale"] {
		return unsupportedKind(from, "scaled directly", "deployments, stateful sets, replica sets and kinds with a scale")
	}
	spec := object{
		"scaleTargetRef": object{"apiVersion": strings.TrimPrefix(from.Group+"/"+from.Version, "/"), "kind": from.Kind, "name": from.Name},
		"maxReplicas":    int64(op.Max),
	}
	if op.Min != nil {
		spec["minReplicas"] = int64(*op.Min)
	}
	if op.CPUPercent > 0 {
		spec["metrics"] = []any{object{"type": "Resource", "resource": object{
			"name": "cpu", "target": object{"type": "Utilization", "averageUtilization": int64(op.CPUPercent)},
		}}}
	}
	c.body["spec"] = spec
	return nil
}
