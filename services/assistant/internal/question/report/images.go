package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// container names a container of a workload.
type container struct {
	workload operation.Ref
	name     string
}

// Images lists, by workload, the wanted image and the running ones: they differ while a rollout is stuck or paused.
func Images(v View) Answer {
	running := v.runningImages()
	t := newTable("Namespace", "Workload", "Container", "Wanted", "Running")
	differ := 0
	for _, w := range v.Workloads() {
		for i := range w.Template.Spec.Containers {
			c := &w.Template.Spec.Containers[i]
			runs := running[container{operation.Ref{Kind: w.Ref.Kind, Namespace: w.Ref.Namespace, Name: w.Ref.Name}, c.Name}]
			if len(runs) != 1 || runs[c.Image] == 0 {
				differ++
			}
			t.add(tableCell(w.Ref.Namespace), kindName(w.Ref), tableCell(c.Name), tableCell(c.Image), imageCounts(runs, c.Image))
		}
	}
	head := "Images " + v.where() + ":"
	if differ > 0 {
		head = fmt.Sprintf("Images %s; %s exactly the wanted image:", v.where(), countNoun(differ, "container does not run", "containers do not run"))
	}
	return t.under(head, "There are no workloads "+v.where()+".")
}

// runningImages counts the pods that run each image, by container.
func (v View) runningImages() map[container]map[string]int {
	all, owner := map[container]map[string]int{}, v.Owners()
	for _, pod := range v.pods() {
		o := owner(pod)
		for _, st := range pod.Status.ContainerStatuses {
			if st.State.Running == nil && !st.Ready {
				continue
			}
			of := container{operation.Ref{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}, st.Name}
			for i := range pod.Spec.Containers {
				if pod.Spec.Containers[i].Name != st.Name {
					continue
				}
				if all[of] == nil {
					all[of] = map[string]int{}
				}
				all[of][pod.Spec.Containers[i].Image]++
			}
		}
	}
	return all
}

// imageCounts shows which images run in how many pods, the wanted one last: a different one is news.
func imageCounts(runs map[string]int, wanted string) string {
	if len(runs) == 0 {
		return "none runs"
	}
	images := make([]string, 0, len(runs))
	for image := range runs {
		images = append(images, image)
	}
	slices.SortFunc(images, func(a, b string) int {
		return cmp.Or(cmp.Compare(boolRank(a == wanted), boolRank(b == wanted)), strings.Compare(a, b))
	})
	shown := make([]string, 0, len(images))
	for _, image := range images {
		shown = append(shown, fmt.Sprintf("%s in %s", tableCell(image), countNoun(runs[image], "pod", "pods")))
	}
	return joinList(shown)
}

func boolRank(last bool) int {
	if last {
		return 1
	}
	return 0
}
