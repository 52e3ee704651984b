package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

const (
	pageSize = 500
	maxPages = 40 // of one kind: beyond that a list is no answer

	wholeCharacters = 1 << 20 // of a table that is filtered before it is shown
)

// everyKind lists the kinds that kubectl includes in all.
var everyKind = []string{"pods", "services", "daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps", "horizontalpodautoscalers.autoscaling", "cronjobs.batch", "jobs.batch"}

// list shows the objects of one kind or several.
func (c *call) list(ctx context.Context) (turn.Output, error) {
	if c.writesObjects() {
		return c.listObjects(ctx)
	}
	var out turn.Output
	kinds := c.op.Kinds()
	all := slices.Equal(kinds, []string{"all"})
	if all {
		kinds = everyKind
	}
	for i, kind := range kinds {
		r, err := c.Cluster.Resolve(ctx, kind)
		if err != nil {
			return out, err
		}
		page, err := c.rows(ctx, r, c.scope(r), metav1.ListOptions{LabelSelector: c.op.LabelSelector, FieldSelector: c.op.FieldSelector})
		if err != nil {
			return out, err
		}
		if all && len(page.Rows) == 0 {
			continue
		}
		if err := c.sortRows(ctx, r, &page); err != nil {
			return out, err
		}
		if len(kinds) > 1 {
			out.Text += r.Resource + ":\n"
			if len(page.Rows) > 0 {
				out.Whole += r.Resource + ":\n"
			}
		}
		// What is left over by a kind goes to those behind it.
		share := (maxCharacters - len(out.Text)) / (len(kinds) - i)
		c.show(&out, r, page, share)
		if len(kinds) > 1 && i < len(kinds)-1 {
			out.Text += "\n"
			if len(page.Rows) > 0 {
				out.Whole += "\n"
			}
		}
	}
	out.Empty = out.Whole == ""
	if all && out.Text == "" {
		out.Text = "There are no pods, workloads or services there.\n"
	}
	return out, nil
}

// show adds a table to the output.
func (c *call) show(out *turn.Output, r cluster.Resource, page table.Page, characters int) {
	namespace := c.scope(r)
	if len(page.Rows) == 0 {
		out.Text += fmt.Sprintf("There are no %s in %s.\n", r.GVR().GroupResource(), scopePhrase(r, namespace))
		return
	}
	if c.op.Output == "name" {
		page.Table = rowNames(r, page.Table)
	}
	for _, row := range page.Rows {
		for i, cell := range row.Cells {
			row.Cells[i] = shortenRedacted(cell)
		}
	}
	whole, part := page.Text(table.View{Namespaces: r.Namespaced && namespace == "", Wide: c.op.Output == "wide", Bare: c.op.Output == "name", Rows: c.op.Limit, Characters: wholeCharacters, More: page.Remaining})
	if part { // its last line is no row
		whole = whole[:strings.LastIndexByte(strings.TrimSuffix(whole, "\n"), '\n')+1]
	}
	out.Whole, out.WholeTruncated = out.Whole+whole, out.WholeTruncated || part
	if c.op.SortBy == "" {
		page.TroubleFirst()
	}
	for _, row := range page.Rows {
		out.Cite(operation.Reference{Group: r.Group, Kind: r.Kind, Namespace: cmp.Or(row.Namespace, namespace), Name: row.Name, ResourceVersion: row.ResourceVersion})
	}
	text, cut := page.Text(table.View{
		Namespaces: r.Namespaced && namespace == "", Wide: c.op.Output == "wide", Bare: c.op.Output == "name", Rows: c.op.Limit, Characters: characters, More: page.Remaining,
	})
	out.Text += text
	out.Truncated = out.Truncated || cut
	if r.Resource == "events" {
		out.Untrusted = append(out.Untrusted, text)
	}
}

// rowNames keeps the name of each row as kubectl prints it: pod/web, deployment.apps/web.
func rowNames(r cluster.Resource, t table.Table) table.Table {
	kind := schema.GroupResource{Group: r.Group, Resource: strings.ToLower(r.Kind)}.String()
	short := table.Table{Columns: []table.Column{{Name: "NAME"}}}
	for _, row := range t.Rows {
		short.Rows = append(short.Rows, table.Row{Namespace: row.Namespace, Name: row.Name, Cells: []string{kind + "/" + row.Name}})
	}
	return short
}

// rows reads all rows of a kind, page by page: to show the troubled ones first, every
// one has to be seen.
func (c *call) rows(ctx context.Context, r cluster.Resource, namespace string, o metav1.ListOptions) (table.Page, error) {
	var all table.Page
	o.Limit = pageSize
	for range maxPages {
		raw, err := c.ask(ctx, r, namespace, "", o)
		if apierrors.IsResourceExpired(err) && len(all.Rows) > 0 {
			return all, nil // the rest is counted by Remaining of the page before
		}
		if err != nil {
			return table.Page{}, err
		}
		page, err := table.Decode(raw)
		if err != nil {
			return table.Page{}, err
		}
		if len(all.Columns) == 0 {
			all.Columns = page.Columns
		}
		all.Rows = append(all.Rows, slices.DeleteFunc(page.Rows, func(row table.Row) bool { return !c.rowExists(r, namespace, row) })...)
		all.Remaining = page.Remaining
		if o.Continue = page.Continue; o.Continue == "" {
			all.Remaining = 0
			break
		}
		all.Remaining = max(all.Remaining, 1) // with a selector servers do not count
	}
	return all, nil
}

// rowExists hides rows of hidden namespaces, and of volumes that are claimed from there.
func (c *call) rowExists(r cluster.Resource, namespace string, row table.Row) bool {
	if row.Namespace == "" {
		row.Namespace = namespace
	}
	return c.exists(r, row.Namespace, row.Name) && !slices.ContainsFunc(row.Cells, func(cell string) bool {
		owner, _, ok := strings.Cut(cell, "/")
		return ok && !r.Namespaced && c.hidden(owner)
	})
}

// ask gets a list, or with a name an object, as the server prints it.
func (c *call) ask(ctx context.Context, r cluster.Resource, namespace, name string, o metav1.ListOptions) ([]byte, error) {
	path := []string{"/apis", r.Group, r.Version}
	if r.Group == "" {
		path = []string{"/api", r.Version}
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	request := c.Cluster.Typed().CoreV1().RESTClient().Get().AbsPath(append(append(path, r.Resource), name)...).SetHeader("Accept", table.Accept)
	if name == "" {
		request = request.VersionedParams(&o, scheme.ParameterCodec)
	}
	result := request.Do(ctx)
	if err := result.Error(); err != nil { // unlike that of Raw, this one has read the server's status
		return nil, err
	}
	return result.Raw()
}
