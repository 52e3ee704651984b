package workload

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// noPlatformExpr matches the messages of runtimes about an image built for another platform.
var noPlatformExpr = regexp.MustCompile(`(?i)no match(ing manifest)? for (platform|\S+/\S+ in the manifest)|no matching manifest|does not match the (specified|detected) (host )?platform`)

var (
	// forbiddenExpr matches a refusal regardless of credentials; a missing login is matched before it.
	forbiddenExpr = regexp.MustCompile(`(?i)\b403\b|\bforbidden\b`)
	// askedExpr matches the host that a node contacted, in the message about a pull.
	askedExpr = regexp.MustCompile(`https?://([^/\s"'\\:?]+)`)
)

// pullFaults map the messages of registries and runtimes to causes, the most certain first: a refused login often adds
// that the repository may not exist, while an absent tag never mentions logins.
var pullFaults = []struct {
	expr                  *regexp.Regexp
	evidence, cause, text string
	confidence            engine.Confidence
	// name means that another image may help; the other faults affect every image.
	name bool
}{
	{noPlatformExpr, "", "The image %s has no variant for the architecture of its node.",
		"Build the image for this architecture as well, or keep the pod on nodes that the image is built for: a nodeSelector for kubernetes.io/arch.", engine.High, false},
	{regexp.MustCompile(`(?i)toomanyrequests|too many requests|rate limit|\b429\b`), "", "The registry refuses for now, because too much was pulled from it.",
		"Wait; then give the workload pull credentials with a higher rate, or use a mirror.", engine.High, false},
	{regexp.MustCompile(`(?i)may require .{0,20}login|pull access denied`), "", "The registry does not show the image %s: its name is wrong, or the pull credentials are absent or not accepted.",
		"Check the name, and name a Secret with pull credentials in imagePullSecrets.", engine.Medium, true},
	{regexp.MustCompile(`(?i)\b401\b|unauthorized|authentication required|no basic auth|authorization failed`), "", "The registry wants pull credentials for the image %s, and those of the pod are absent or not accepted.",
		"Create a Secret with valid pull credentials and name it in imagePullSecrets of the pod or its service account.", engine.High, false},
	{forbiddenExpr, "", "What the node pulls from refuses the image %s (403): the pull credentials lack the right to it, or a mirror of the registry does not let it out.",
		"See what the mirror of the registry allows, if the node pulls from one; else name a Secret with pull credentials that have the right in imagePullSecrets.", engine.Medium, false},
	{regexp.MustCompile(`(?i)\bdenied\b`), "", "The registry wants pull credentials for the image %s, and those of the pod are absent or not accepted.",
		"Create a Secret with valid pull credentials and name it in imagePullSecrets of the pod or its service account.", engine.High, false},
	{regexp.MustCompile(`(?i)not found|manifest unknown|does not exist|no such manifest`), "The registry answered, so it is no matter of credentials (auth).", "The image %s does not exist in its registry: the tag or the name is wrong.",
		"Choose a tag that exists.", engine.High, true},
	{regexp.MustCompile(`(?i)no such host|connection refused|timeout|timed out|no route to host|x509|certificate|dial tcp|unreachable`), "", "The node cannot reach the registry of the image %s.",
		"Check the registry's name, and the way from the node to it.", engine.High, false},
}

// checkImagePulls explains ImagePull: waiting reason first, then the registry's message.
func checkImagePulls(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	var found []engine.Finding
	for _, c := range engine.ListContainers(pod) {
		reason := c.Waiting()
		switch reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable":
		default:
			continue
		}
		f := engine.Finding{Class: engine.ImagePull, Object: w.Ref, Confidence: engine.High, Container: c.Spec.Name}
		f.Evidence = []string{fmt.Sprintf("Container %s waits: %s, image %s.", engine.QuoteCode(c.Spec.Name), reason, engine.QuoteCode(c.Spec.Image))}
		switch reason {
		case "InvalidImageName":
			f.Cause = fmt.Sprintf("%s is no image name.", engine.QuoteCode(c.Spec.Image))
			f.Text = "Choose a valid image."
			offerOldImage(&f, w, c)
		case "ErrImageNeverPull":
			f.Cause = fmt.Sprintf("The image %s is not on the node, and imagePullPolicy Never forbids to pull it.", engine.QuoteCode(c.Spec.Image))
			f.Text = "Set imagePullPolicy to IfNotPresent, or load the image on the node."
		default:
			if explainPullFault(&f, x, pod, c) {
				offerOldImage(&f, w, c)
			}
		}
		found = append(found, f)
	}
	return found
}

// explainPullFault returns the reason, and whether another image may help.
func explainPullFault(f *engine.Finding, x *Index, pod *corev1.Pod, c engine.Container) bool {
	said := c.Status.State.Waiting.Message
	if e := x.EventOf(pod.UID, func(e *corev1.Event) bool {
		return e.Reason == "Failed" && e.InvolvedObject.FieldPath == fieldPath(c) && strings.Contains(e.Message, "pull")
	}); e != nil {
		said = e.Message
	}
	// A name may contain any of the search words.
	words := strings.ReplaceAll(said, c.Spec.Image, "")
	if repository, _, ok := strings.Cut(c.Spec.Image, ":"); ok {
		words = strings.ReplaceAll(words, repository, "")
	}
	f.Evidence = append(f.Evidence, "The node says "+engine.QuoteCode(said)+".")
	for _, fault := range pullFaults {
		if !fault.expr.MatchString(words) {
			continue
		}
		if fault.evidence != "" {
			f.Evidence = append(f.Evidence, fault.evidence)
		}
		f.Cause, f.Text, f.Confidence = strings.ReplaceAll(fault.cause, "%s", engine.QuoteCode(c.Spec.Image)), fault.text, fault.confidence
		if mirror := mirrorOf(c.Spec.Image, said); fault.expr == forbiddenExpr && mirror != "" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("The node asked %s, which is not the registry of the image.", engine.QuoteCode(mirror)))
		}
		if fault.expr == noPlatformExpr {
			f.Evidence = append(f.Evidence, x.architecture(pod)...)
		}
		if strings.Contains(fault.text, "imagePullSecrets") {
			f.Evidence = append(f.Evidence, x.pullSecrets(pod))
		}
		return fault.name
	}
	f.Cause, f.Confidence = fmt.Sprintf("The node cannot pull the image %s.", engine.QuoteCode(c.Spec.Image)), engine.Medium
	f.Text = "Try to pull the image by hand with the same credentials."
	return false
}

// mirrorOf returns the host that a node contacted for an image, if it is not the registry in the image's name.
func mirrorOf(image, said string) string {
	registry, _, _ := strings.Cut(image, "/")
	for _, m := range askedExpr.FindAllStringSubmatch(said, -1) {
		if host := m[1]; !strings.HasPrefix(registry, host) && !strings.HasSuffix(host, ".docker.io") && !strings.HasPrefix(host, "auth.") {
			return host
		}
	}
	return ""
}

// architecture describes the architecture of a pod's node.
func (x *Index) architecture(pod *corev1.Pod) []string {
	node := x.NodeOf(pod)
	if node == nil || node.Status.NodeInfo.Architecture == "" {
		return nil
	}
	return []string{fmt.Sprintf("Node %s has the architecture %s (%s).", engine.QuoteCode(node.Name), engine.QuoteCode(node.Status.NodeInfo.Architecture), node.Status.NodeInfo.OperatingSystem)}
}

// pullSecrets describes which pull credentials the pod names, and whether they exist.
func (x *Index) pullSecrets(pod *corev1.Pod) string {
	if len(pod.Spec.ImagePullSecrets) == 0 {
		return "The pod names no pull credentials."
	}
	var all, absent []string
	for _, r := range pod.Spec.ImagePullSecrets {
		all = append(all, r.Name)
		if _, ok := x.SecretKeys[engine.Name{Namespace: pod.Namespace, Name: r.Name}]; !ok && !x.Unread["secrets"] {
			absent = append(absent, r.Name)
		}
	}
	s := "The pod names the pull credentials " + engine.QuoteCodes(all)
	if len(absent) > 0 {
		s += "; absent are " + engine.QuoteCodes(absent)
	}
	return s + "."
}

// offerOldImage offers the container's previous image.
func offerOldImage(f *engine.Finding, w *engine.Workload, c engine.Container) {
	if !w.Patchable() || c.Init {
		return
	}
	for _, r := range w.Older {
		then := engine.FindContainer(r.Template, c.Spec.Name)
		if then == nil || then.Image == c.Spec.Image {
			continue
		}
		o := engine.NewOperation(operation.SetImage, w.Ref)
		o.Images = map[string]string{c.Spec.Name: then.Image}
		if f.Fix = engine.ValidFix(o); f.Fix != nil {
			f.Text = fmt.Sprintf("Give back the image of revision %d, %s.", r.Number, engine.QuoteCode(then.Image))
			if r.Ready > 0 {
				f.Text += " " + engine.CountNoun(int(r.Ready), "pod of it is", "pods of it are") + " ready."
			}
		}
		return
	}
}
