package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Class is a kind of problem. Its value is its rank and is never stored or sent; only the order
// matters: crashes first, and causes before their effects.
type Class int

// The classes.
const (
	CrashLoop Class = iota + 1
	OutOfMemory
	ImagePull
	MissingObject
	MissingKey
	PendingResources
	PendingPlacement
	ClaimUnbound
	QuotaExceeded
	LimitRangeViolated
	LivenessProbe
	ReadinessProbe
	ServiceWithoutEndpoint
	ServicePort
	ServiceWithoutAddress
	IngressBackend
	GatewayListener
	RouteBackend
	CertificateIssuer
	CertificateNotIssued
	TLSSecret
	PolicyBlocks
	NameResolution
	StuckTerminating
	NodeTrouble
	AutoscalerIdle
	BudgetDeadlock
	JobFailed
	CronJobIdle
	AccessForbidden
	MissingServiceAccount
	InitContainer
	Sidecar
	ReadinessGate
	RolloutStuck
	DeprecatedAPI
	StatefulSetStuck
	AdmissionWebhook
	ApplicationNotSynced
	ReleaseNotDeployed
	CPULimit
	DatabaseRefuses
	VolumeNotAttached
)

var classNames = map[Class]string{
	CrashLoop: "crash loop", OutOfMemory: "out of memory", ImagePull: "image pull", MissingObject: "missing configuration",
	MissingKey: "missing key", PendingResources: "pending: resources", PendingPlacement: "pending: placement",
	ClaimUnbound: "volume claim unbound", QuotaExceeded: "quota", LimitRangeViolated: "limit range",
	LivenessProbe: "liveness or startup probe", ReadinessProbe: "readiness probe", ServiceWithoutEndpoint: "service without endpoints", ServicePort: "service port", ServiceWithoutAddress: "service without address",
	IngressBackend: "ingress", GatewayListener: "gateway", RouteBackend: "route", CertificateIssuer: "certificate issuer", CertificateNotIssued: "certificate", TLSSecret: "TLS Secret", PolicyBlocks: "network policy", NameResolution: "name resolution", StuckTerminating: "stuck terminating",
	NodeTrouble: "node", AutoscalerIdle: "autoscaler", BudgetDeadlock: "disruption budget", JobFailed: "job failed", CronJobIdle: "cron job idle",
	AccessForbidden: "access forbidden", MissingServiceAccount: "missing service account", InitContainer: "init container", Sidecar: "sidecar",
	ReadinessGate: "readiness gate", RolloutStuck: "rollout stuck", DeprecatedAPI: "deprecated API", StatefulSetStuck: "stateful set", AdmissionWebhook: "admission webhook", ApplicationNotSynced: "Argo CD application", ReleaseNotDeployed: "Helm release", CPULimit: "CPU limit", DatabaseRefuses: "database", VolumeNotAttached: "volume attachment",
}

// ClassNames returns all classes, as an answer shows them.
func ClassNames() []string { return slices.Sorted(maps.Values(classNames)) }

// String returns the class as an answer shows it.
func (c Class) String() string { return classNames[c] }

// Confidence is the certainty of a cause.
type Confidence int

// Low: it fits. Medium: nothing else was found. High: fields of the cluster prove it.
const (
	Low Confidence = iota
	Medium
	High
)

// String returns the confidence as an answer shows it.
func (c Confidence) String() string { return [...]string{"low", "medium", "high"}[c] }

// Finding is one problem and its remedy.
type Finding struct {
	Class Class
	// As is the class of the container's own problem, for an InitContainer or Sidecar;
	// 0 if it can only occur there.
	As     Class
	Object operation.Ref // the object that a person would change
	// Pods are the names of the pods that have the problem.
	Pods       []string
	Evidence   []string // sentences, foreign text in backticks
	Cause      string   // a sentence
	Confidence Confidence
	// Fix is an operation with values from the cluster only; nil if a person must supply
	// a value; otherwise already validated.
	Fix *operation.Operation
	// Text describes what to do; with a Fix, what it does.
	Text string
	// Consequences are findings that go away with this one.
	Consequences []Finding

	// Container is the container that has the problem; empty means the pod as a whole.
	Container string
	// Blind means that the log with the details was not read, so that the finding of another pod of the workload covers
	// this one too.
	Blind bool
	// Because holds the objects whose findings caused this one.
	Because []operation.Ref
	// Effects are findings that this one explains, even if they do not list it in Because.
	Effects []Effect
	// Touches are further objects that the finding concerns, without explaining their other problems.
	Touches []operation.Ref
	// Order puts a finding before (negative) or after (positive) all others, whatever their class.
	Order int
	// Follower means that it is reported only as a consequence.
	Follower bool
	// Namespaces are the namespaces affected by a problem elsewhere, such as on a node.
	Namespaces []string
}

// QuoteCode shows foreign text: short, on one line, and as code, so that no link or markup in it takes effect.
func QuoteCode(s string) string { return quoteUpTo(s, 120, 80) }

// QuoteLine is QuoteCode with room for a whole log line, since an answer rests on it.
func QuoteLine(s string) string { return quoteUpTo(s, 280, 160) }

// quoteUpTo keeps the head and the tail: a wrapped error has its source at the front and its reason at the end.
func quoteUpTo(s string, head, tail int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '`':
			return '\''
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, strings.TrimSpace(s))
	if runes := []rune(s); len(runes) > head+tail {
		s = string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
	}
	return "`" + s + "`"
}

// QuoteCodes lists foreign texts, the first ten.
func QuoteCodes(list []string) string {
	const most = 10
	shown := make([]string, 0, most)
	for i, s := range list {
		if i == most {
			return strings.Join(shown, ", ") + fmt.Sprintf(" and %d more", len(list)-most)
		}
		shown = append(shown, QuoteCode(s))
	}
	return strings.Join(shown, ", ")
}

// plain are the kinds whose names are split into words in a sentence.
var plain = map[string]string{
	"PersistentVolumeClaim": "volume claim", "PersistentVolume": "volume", "NetworkPolicy": "network policy",
	"HorizontalPodAutoscaler": "autoscaler", "PodDisruptionBudget": "disruption budget", "ResourceQuota": "quota",
}

// RefTitle returns an object's name for a sentence.
func RefTitle(r operation.Ref) string {
	kind, ok := plain[r.Kind]
	if !ok {
		kind = strings.ToLower(r.Kind)
	}
	return kind + " " + QuoteCode(r.Name)
}

// ValidFix returns the operation if it may be shown as a fix. Names and values come from the cluster, and an operation
// that the closed grammar refuses is no fix.
func ValidFix(o operation.Operation) *operation.Operation {
	o = operation.Normalize(o)
	if o.Validate() != nil {
		return nil
	}
	return &o
}

// kind returns the class of a finding with that of its container's problem.
func (f Finding) kind() string {
	if f.As != 0 {
		return f.Class.String() + ": " + f.As.String()
	}
	return f.Class.String()
}
