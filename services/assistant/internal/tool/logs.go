package tool

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/clip"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

const (
	defaultTail = 100
	// firstPage is how many last lines the first read of a whole log asks for, and pageGrowth how many times as
	// many each further read does: the API gives lines from the end only.
	firstPage, pageGrowth = 2_000, 4
	// maxScanned limits the bytes of one log in which a text is looked for.
	maxScanned = 32 << 20
	// maxSources limits how many containers one call reads.
	maxSources = 10
	maxLogLine = 1000 // characters kept of one line
	// maxWhole limits what an engine gets of one log, in bytes.
	maxWhole = 4 << 20
)

// source is one container's log.
type source struct{ namespace, pod, container string }

// logs reads the log of a pod, or of the pods behind a workload or selector.
func (c *call) logs(ctx context.Context) (turn.Output, error) {
	pods, err := c.logPods(ctx)
	if err != nil {
		return turn.Output{}, err
	}
	sources, err := c.sources(pods)
	if err != nil {
		return turn.Output{}, err
	}
	var out turn.Output
	if len(sources) > maxSources {
		out.Truncated = true
		out.Text = fmt.Sprintf("[the first %d of %d containers, troubled pods first; name a pod or container]\n", maxSources, len(sources))
		sources = sources[:maxSources]
	}
	texts, cuts, errs := make([]string, len(sources)), make([]bool, len(sources)), make([]error, len(sources))
	var reading sync.WaitGroup
	for i, s := range sources {
		reading.Go(func() { texts[i], cuts[i], errs[i] = c.read(ctx, s) })
	}
	reading.Wait()
	if len(sources) == 1 && errs[0] != nil {
		return turn.Output{}, errs[0]
	}
	if whole := turn.WantsWholeLog(ctx); whole || len(sources) == 1 {
		out.WholeTruncated = out.Truncated
		for i, text := range texts {
			out.Whole += redact.Text(text)
			out.WholeTruncated = out.WholeTruncated || errs[i] != nil || cuts[i]
		}
		out.Empty = out.Whole == "" && !out.WholeTruncated
	}
	share := (maxLogCharacters - len(out.Text)) / len(sources)
	for i, s := range sources {
		out.Cite(operation.Reference{Kind: "Pod", Namespace: s.namespace, Name: s.pod, Container: s.container})
		title := ""
		if len(sources) > 1 {
			title = fmt.Sprintf("==> %s/%s <==\n", s.pod, s.container)
		}
		text, cut := clip.Tail(redact.Text(texts[i]), share-len(title), "use tail, since or contains")
		switch {
		case errs[i] != nil:
			text = "[" + cluster.Fail(errs[i]).Error() + "]\n"
		case text == "" && cuts[i]:
			text = "[no lines in the last 32 MB; what is older was not read]\n"
		case text == "":
			text = "[no lines]\n"
		default:
			out.Untrusted = append(out.Untrusted, text)
		}
		out.Text += title + text
		out.Truncated = out.Truncated || cut
	}
	return out, nil
}

// logPods finds the pods that the operation means, those in trouble first.
func (c *call) logPods(ctx context.Context) ([]corev1.Pod, error) {
	pod, err := c.Cluster.Resolve(ctx, "pods")
	if err != nil {
		return nil, err
	}
	namespace, selector := c.scope(pod), c.op.LabelSelector
	for _, o := range c.op.Objects() {
		object, r, err := c.object(ctx, o)
		if err != nil {
			return nil, err
		}
		if r.Group == "" && r.Resource == "pods" {
			p, err := c.Cluster.Typed().CoreV1().Pods(namespace).Get(ctx, o.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return []corev1.Pod{*p}, nil
		}
		if object, err = c.latestJob(ctx, object, r); err != nil {
			return nil, err
		}
		if selector, err = podSelector(object); err != nil {
			return nil, err
		}
	}
	list, err := c.Cluster.Typed().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: pageSize})
	if err != nil {
		return nil, err
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return c.hidden(p.Namespace) })
	if len(pods) == 0 {
		return nil, operation.Refuse(operation.NotFound, "", "No pod in %s has the labels %s.", scopePhrase(pod, namespace), operation.Quote(selector))
	}
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int { return troubleScore(&b) - troubleScore(&a) })
	return pods, nil
}

// troubleScore weighs how much a pod's log may tell.
func troubleScore(p *corev1.Pod) int {
	weight := 0
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if s.RestartCount > 0 {
			weight++
		}
		if !s.Ready && (s.State.Terminated == nil || s.State.Terminated.ExitCode != 0) {
			weight += 2
		}
	}
	return weight
}

// latestJob is the newest Job of a CronJob; other objects come back as they are.
func (c *call) latestJob(ctx context.Context, o *unstructured.Unstructured, r cluster.Resource) (*unstructured.Unstructured, error) {
	if r.Kind != "CronJob" || r.Group != "batch" {
		return o, nil
	}
	jobs, err := c.Cluster.Dynamic().Resource(r.GVR().GroupVersion().WithResource("jobs")).Namespace(o.GetNamespace()).List(ctx, metav1.ListOptions{Limit: pageSize})
	if err != nil {
		return nil, err
	}
	var latest *unstructured.Unstructured
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if metav1.IsControlledBy(job, o) && (latest == nil || latest.GetCreationTimestamp().Time.Before(job.GetCreationTimestamp().Time)) {
			latest = job
		}
	}
	if latest == nil {
		return nil, operation.Refuse(operation.NotFound, "", "CronJob %s has no Job, so nothing has written a log.", o.GetName())
	}
	return latest, nil
}

// podSelector is how an object chooses its pods.
func podSelector(o *unstructured.Unstructured) (string, error) {
	spec, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	if _, rich := spec["matchLabels"]; rich || spec["matchExpressions"] != nil {
		var selector metav1.LabelSelector
		if err := fromMap(spec, &selector); err == nil {
			if s, err := metav1.LabelSelectorAsSelector(&selector); err == nil && !s.Empty() {
				return s.String(), nil
			}
		}
	}
	if plain, ok, _ := unstructured.NestedStringMap(o.Object, "spec", "selector"); ok && len(plain) > 0 {
		return labels.SelectorFromSet(plain).String(), nil
	}
	return "", operation.Refuse(operation.InvalidArgument, "kind", "%s %s chooses no pods, so it has no log.", o.GetKind(), o.GetName())
}

// sources are the containers whose logs are wanted: the one that is named, else all
// that may have written something.
func (c *call) sources(pods []corev1.Pod) ([]source, error) {
	var found []source
	var known []string
	for i := range pods {
		p := &pods[i]
		for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for _, container := range list {
				known = append(known, container.Name)
				if c.op.Container == container.Name || c.op.Container == "" && (hasStarted(p, container.Name) || len(p.Spec.Containers) == 1 && len(p.Spec.InitContainers) == 0) {
					found = append(found, source{p.Namespace, p.Name, container.Name})
				}
			}
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	slices.Sort(known)
	known = slices.Compact(known)
	if c.op.Container != "" {
		return nil, operation.Refuse(operation.NotFound, "container", "There is no container %s; there are %s.", operation.Quote(c.op.Container), strings.Join(known, ", "))
	}
	return nil, operation.Refuse(operation.NotFound, "", "No container of %s has started, so there is no log; describe the pod.", pods[0].Name)
}

// hasStarted reports whether a container has run, and so may have written. An init container
// that did its work has nothing to tell.
func hasStarted(p *corev1.Pod, container string) bool {
	for _, s := range p.Status.InitContainerStatuses {
		if s.Name == container {
			return (s.State.Running != nil || s.State.Terminated != nil || s.RestartCount > 0) && (s.State.Terminated == nil || s.State.Terminated.ExitCode != 0)
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == container {
			return s.State.Running != nil || s.State.Terminated != nil || s.RestartCount > 0
		}
	}
	return false
}

// linesKept is how many lines of one log are kept at most; 0: as many as maxWhole allows.
func (c *call) linesKept(ctx context.Context) int {
	switch {
	case c.op.Tail > 0:
		return c.op.Tail
	case turn.WantsWholeLog(ctx):
		return 0
	}
	return defaultTail
}

// read gets the last lines of one log, of those with the wanted text. A whole log, and one that is searched, is
// read from its end in pages until its beginning, the beginning of the period, or a bound in bytes: cut.
func (c *call) read(ctx context.Context, s source) (text string, cut bool, err error) {
	keep := c.linesKept(ctx)
	if keep > 0 && c.op.Contains == "" {
		p, err := c.readPage(ctx, s, keep, keep)
		return p.text, false, err
	}
	limit := maxWhole
	if c.op.Contains != "" {
		limit = maxScanned
	}
	for tail := firstPage; ; tail *= pageGrowth {
		p, err := c.readPage(ctx, s, tail, keep)
		switch {
		case err != nil:
			return p.text, true, err
		case p.lines < tail:
			return p.text, p.dropped && keep == 0, nil
		case p.bytes >= limit, p.dropped && keep == 0:
			return p.text, true, nil
		}
	}
}

// readPage reads the last lines of one log, and keeps of them the last with the wanted text.
func (c *call) readPage(ctx context.Context, s source, tail, keep int) (page, error) {
	lines := int64(tail)
	o := &corev1.PodLogOptions{Container: s.container, Previous: c.op.Previous, TailLines: &lines}
	if d := parseSince(c.op.Since); d > 0 {
		seconds := int64(d.Seconds())
		o.SinceSeconds = &seconds
	}
	stream, err := c.Cluster.Typed().CoreV1().Pods(s.namespace).GetLogs(s.pod, o).Stream(ctx)
	if err != nil {
		return page{}, err
	}
	defer stream.Close() //nolint:errcheck // it was only read
	return readLines(stream, keep, c.op.Contains)
}

// page is the retained end of a log.
type page struct {
	text    string
	lines   int  // that were read
	bytes   int  // that were read
	dropped bool // some lines with the wanted text were not kept
}

// readLines keeps the last lines that hold a text, in whatever case, each one short: the memory is bounded
// whatever a container writes. With 0 lines to keep, it keeps as many as maxWhole allows.
func readLines(r io.Reader, keep int, contains string) (page, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	contains = strings.ToLower(contains)
	var p page
	var lines []string
	kept := 0 // bytes
	for {
		line, long, err := in.ReadLine()
		if err == nil || len(line) > 0 {
			p.lines++
			p.bytes += len(line) + 1
			if contains == "" || strings.Contains(strings.ToLower(string(line)), contains) {
				text := string(line)
				if len(text) > maxLogLine { // the whole is redacted once more; what is left of a token that was cut may not look like one
					text = shortenRedacted(text)
				}
				text = table.Line(text, maxLogLine) + "\n"
				lines, kept = append(lines, text), kept+len(text)
			}
			first := 0
			for ; kept > maxWhole || keep > 0 && len(lines)-first > keep; first++ {
				kept -= len(lines[first])
				p.dropped = true
			}
			lines = lines[first:]
		}
		for long && err == nil {
			line, long, err = in.ReadLine()
			p.bytes += len(line)
		}
		if err != nil {
			p.text = strings.Join(lines, "")
			if err == io.EOF {
				err = nil
			}
			return p, err
		}
	}
}
