package playbook

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// pullFaults are what registries and runtimes say, the surest first: a refused login often
// adds that the repository may not exist, an absent tag never speaks of logins.
var pullFaults = []struct {
	expr                  *regexp.Regexp
	evidence, cause, text string
	confidence            Confidence
	// name says that another image may help; what else is wrong meets every image.
	name bool
}{
	{regexp.MustCompile(`(?i)toomanyrequests|too many requests|rate limit|\b429\b`), "", "The registry refuses for now, because too much was pulled from it.",
		"Wait; then give the workload pull credentials with a higher rate, or use a mirror.", High, false},
	{regexp.MustCompile(`(?i)may require .{0,20}login|pull access denied`), "", "The registry does not show the image %s: its name is wrong, or the pull credentials are absent or not accepted.",
		"Check the name, and name a Secret with pull credentials in imagePullSecrets.", Medium, true},
	{regexp.MustCompile(`(?i)\b401\b|\b403\b|unauthorized|authentication required|no basic auth|authorization failed|access denied|\bdenied\b`), "", "The registry wants pull credentials for the image %s, and those of the pod are absent or not accepted.",
		"Create a Secret with valid pull credentials and name it in imagePullSecrets of the pod or its service account.", High, false},
	{regexp.MustCompile(`(?i)not found|manifest unknown|does not exist|no such manifest`), "The registry answered, so it is no matter of credentials (auth).", "The image %s does not exist in its registry: the tag or the name is wrong.",
		"Say which tag to use.", High, true},
	{regexp.MustCompile(`(?i)no such host|connection refused|timeout|timed out|no route to host|x509|certificate|dial tcp|unreachable`), "", "The node cannot reach the registry of the image %s.",
		"Check the registry's name, and the way from the node to it.", High, false},
}

// imagePulls explains class 3: waiting reason first, then what the registry said.
func imagePulls(x *index, pod *corev1.Pod, w *workload) []Finding {
	var found []Finding
	for _, c := range listContainers(pod) {
		reason := c.waiting()
		switch reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable":
		default:
			continue
		}
		f := Finding{Class: ImagePull, Object: w.ref, Confidence: High, container: c.spec.Name}
		f.Evidence = []string{fmt.Sprintf("Container %s waits: %s, image %s.", quoteCode(c.spec.Name), reason, quoteCode(c.spec.Image))}
		switch reason {
		case "InvalidImageName":
			f.Cause = fmt.Sprintf("%s is no image name.", quoteCode(c.spec.Image))
			f.Text = "Say which image to use."
			f.oldImage(w, c)
		case "ErrImageNeverPull":
			f.Cause = fmt.Sprintf("The image %s is not on the node, and imagePullPolicy Never forbids to pull it.", quoteCode(c.spec.Image))
			f.Text = "Set imagePullPolicy to IfNotPresent, or load the image on the node."
		default:
			if f.pullFault(x, pod, c) {
				f.oldImage(w, c)
			}
		}
		found = append(found, f)
	}
	return found
}

// pullFault says why, and whether another image may help.
func (f *Finding) pullFault(x *index, pod *corev1.Pod, c container) bool {
	said := c.status.State.Waiting.Message
	if e := x.eventOf(pod.UID, func(e *corev1.Event) bool {
		return e.Reason == "Failed" && e.InvolvedObject.FieldPath == fieldPath(c) && strings.Contains(e.Message, "pull")
	}); e != nil {
		said = e.Message
	}
	// A name may hold any of the words that are looked for.
	words := strings.ReplaceAll(said, c.spec.Image, "")
	if repository, _, ok := strings.Cut(c.spec.Image, ":"); ok {
		words = strings.ReplaceAll(words, repository, "")
	}
	f.Evidence = append(f.Evidence, "The node says "+quoteCode(said)+".")
	for _, fault := range pullFaults {
		if !fault.expr.MatchString(words) {
			continue
		}
		if fault.evidence != "" {
			f.Evidence = append(f.Evidence, fault.evidence)
		}
		f.Cause, f.Text, f.Confidence = strings.ReplaceAll(fault.cause, "%s", quoteCode(c.spec.Image)), fault.text, fault.confidence
		if strings.Contains(fault.text, "imagePullSecrets") {
			f.Evidence = append(f.Evidence, x.pullSecrets(pod))
		}
		return fault.name
	}
	f.Cause, f.Confidence = fmt.Sprintf("The node cannot pull the image %s.", quoteCode(c.spec.Image)), Medium
	f.Text = "Try to pull the image by hand with the same credentials."
	return false
}

// pullSecrets says which credentials the pod names, and whether they are there.
func (x *index) pullSecrets(pod *corev1.Pod) string {
	if len(pod.Spec.ImagePullSecrets) == 0 {
		return "The pod names no pull credentials."
	}
	var all, absent []string
	for _, r := range pod.Spec.ImagePullSecrets {
		all = append(all, r.Name)
		if _, ok := x.secrets[name{Namespace: pod.Namespace, Name: r.Name}]; !ok && !x.Unread["secrets"] {
			absent = append(absent, r.Name)
		}
	}
	s := "The pod names the pull credentials " + quoteCodes(all)
	if len(absent) > 0 {
		s += "; absent are " + quoteCodes(absent)
	}
	return s + "."
}

// oldImage offers the image that the container had before.
func (f *Finding) oldImage(w *workload, c container) {
	if !w.patchable() || c.init {
		return
	}
	for _, r := range w.older {
		then := findContainer(r.template, c.spec.Name)
		if then == nil || then.Image == c.spec.Image {
			continue
		}
		o := newOperation(operation.SetImage, w.ref)
		o.Images = map[string]string{c.spec.Name: then.Image}
		if f.Fix = validFix(o); f.Fix != nil {
			f.Text = fmt.Sprintf("Give back the image of revision %d, %s.", r.number, quoteCode(then.Image))
			if r.ready > 0 {
				f.Text += " " + countNoun(int(r.ready), "pod of it is", "pods of it are") + " ready."
			}
		}
		return
	}
}
