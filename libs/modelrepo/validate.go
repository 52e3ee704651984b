package modelrepo

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/robfig/cron/v3"
)

// The patterns are compiled at their first use: repeat counts make them large, and most programs that link this package,
// such as mlp, end within milliseconds without one.
var (
	modelName  = lazyPattern(`^[A-Z][A-Za-z0-9]{0,63}$`)
	columnName = lazyPattern(`^[A-Za-z][A-Za-z0-9_]{0,127}$`)
	serveName  = lazyPattern(`^[a-z][a-z0-9_-]{0,63}$`)
	memSize    = lazyPattern(`^[1-9][0-9]*[KMGT]?$`)
	tenantName = lazyPattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	bucketName = lazyPattern(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

	sha256Digest = lazyPattern(`^[0-9a-fA-F]{64}$`)
	timeLimit    = lazyPattern(`^([0-9]+-)?[0-9]+:[0-9]{2}(:[0-9]{2})?$`)
)

func lazyPattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Metrics that each type yields on a part of the rows, and those only two classes yield. Direction is which way
// is better.
var (
	regressionMetrics = map[string]string{"rmse": Lower, "mse": Lower, "mae": Lower, "mape": Lower, "r2": Higher, "male": Lower}
	classMetrics      = map[string]string{"accuracy": Higher, "f1_weighted": Higher, "f1_macro": Higher, "log_loss": Lower}
	binaryMetrics     = map[string]string{"roc_auc": Higher, "pr_auc": Higher, "precision": Higher, "recall": Higher, "f1": Higher}
)

// Directions of a metric.
const (
	Lower  = "lower"
	Higher = "higher"
)

// MetricsOf lists the metrics a model of that type yields, each with the direction that is better. classes is
// the number of labels; 0 if the data decides.
func MetricsOf(t Type, classes int) map[string]string {
	if t == Regression {
		return maps.Clone(regressionMetrics)
	}
	if t == Anomaly {
		return maps.Clone(binaryMetrics)
	}
	out := maps.Clone(classMetrics)
	if classes == 2 || classes == 0 {
		maps.Copy(out, binaryMetrics)
	}
	return out
}

func (m *Model) validate(doc *document) {
	folder, task := path.Base(m.Dir), path.Base(path.Dir(m.Dir))
	switch {
	case !modelName().MatchString(m.Name):
		doc.fault("name", "name %q must be PascalCase or upper-case: a capital, then letters and digits, at most 64", m.Name)
	case m.Name != folder:
		doc.fault("name", "name is %q; it must be the folder's name, %q", m.Name, folder)
	}
	switch {
	case !slices.Contains(TaskTypes, m.TaskType):
		doc.fault("task_type", "task_type %q; want %s", m.TaskType, strings.Join(TaskTypes, ", "))
	case m.TaskType != task:
		doc.fault("task_type", "task_type is %q, but the model lies in models/%s", m.TaskType, task)
	}
	if m.Type != Regression && m.Type != Classification && m.Type != Anomaly {
		doc.fault("type", "type %q; want regression, classification or anomaly", m.Type)
	}
	if types, ok := Estimators[m.Estimator.Kind]; !ok {
		doc.fault("estimator.kind", "estimator %q is not in this build; it has %s", m.Estimator.Kind, strings.Join(sortedKeys(Estimators), ", "))
	} else if !slices.Contains(types, m.Type) {
		doc.fault("estimator.kind", "estimator %s does not suit type %s", m.Estimator.Kind, m.Type)
	} else {
		faults := m.Estimator.hyperparameterFaults(m.Type)
		for _, name := range sortedKeys(faults) {
			doc.fault(strings.TrimSuffix("estimator.hyperparameters."+name, "."), "%v", faults[name])
		}
	}
	if (m.Estimator.Kind == EstimatorCommand) != (len(m.Estimator.Command) > 0) {
		doc.fault("estimator.command", "command names the argv of an estimator of kind command, and of no other")
	}
	if m.BusUUID != "" && uuid.Validate(m.BusUUID) != nil {
		doc.fault("bus_uuid", "bus_uuid %q is no UUID", m.BusUUID)
	}
	if m.Tenant != "" && (!tenantName().MatchString(m.Tenant) || m.Tenant == "platform") {
		doc.fault("tenant", "tenant %q must be letters, digits, '.', '-' and '_', at most 64; platform is reserved", m.Tenant)
	}
	for i, s := range m.Sources {
		if err := checkPath(s); err != nil {
			doc.fault(fmt.Sprintf("sources[%d]", i), "%v", err)
		}
	}
	if len(m.Datasets) == 0 {
		doc.fault("datasets", "a model needs at least one data set")
	}
	for i := range m.Datasets {
		m.Datasets[i].validate(doc, fmt.Sprintf("datasets[%d]", i), m.Type)
		if slices.ContainsFunc(m.Datasets[:i], func(o ModelDataset) bool { return o.Name == m.Datasets[i].Name }) {
			doc.fault(fmt.Sprintf("datasets[%d].name", i), "data set %s is listed twice", m.Datasets[i].Name)
		}
	}
	m.Split.validate(doc)
	m.validateLadder(doc)
	if !serveName().MatchString(m.Serving.ModelID) {
		doc.fault("serving.model_id", "model_id %q must be lower-case letters, digits, - and _", m.Serving.ModelID)
	}
	s := m.settings()
	s.check(doc, "")
}

func (s settings) check(doc *document, at string) {
	for _, a := range s.Serving.Aliases {
		if !slices.Contains(Aliases, a) {
			doc.fault(at+"serving.aliases", "alias %q; want %s", a, strings.Join(Aliases, ", "))
		}
	}
	if _, err := cron.ParseStandard(s.Schedule.Cron); err != nil {
		doc.fault(at+"schedule.cron", "cron %q: %v", s.Schedule.Cron, err)
	}
	if _, err := time.LoadLocation(s.Schedule.Timezone); err != nil {
		doc.fault(at+"schedule.timezone", "timezone %q is unknown", s.Schedule.Timezone)
	}
	if s.Schedule.ConcurrencyLimit < 1 {
		doc.fault(at+"schedule.concurrency_limit", "concurrency_limit must be at least 1")
	}
	r := s.Resources
	if r.Nodes < 1 || r.CPUs < 1 || r.GPUs < 0 {
		doc.fault(at+"resources", "resources need at least 1 node and 1 cpu, and no negative gpus")
	}
	if !memSize().MatchString(r.Mem) {
		doc.fault(at+"resources.mem", "mem %q; want a size such as 16G", r.Mem)
	}
	if !timeLimit().MatchString(r.Time) {
		doc.fault(at+"resources.time", "time %q; want hours:minutes:seconds, such as 2:00:00", r.Time)
	}
	if !slices.Contains(BackendNames, s.Backend) {
		doc.fault(at+"backend", "backend %q; want local, public_archive, object_store or dataplane", s.Backend)
	}
	if s.Project == "" {
		doc.fault(at+"project", "project must not be empty")
	}
}

var featureTransforms = map[Kind][]string{
	Number:   {TransformNone, TransformLog1p, TransformStandardize},
	Category: {TransformOneHot, TransformOrdinal},
	Vector:   {TransformNone, TransformStandardize},
}

func (d *ModelDataset) validate(doc *document, at string, t Type) {
	if d.Backend != "" && !slices.Contains(BackendNames, d.Backend) {
		doc.fault(at+".backend", "backend %q; want local, public_archive, object_store or dataplane", d.Backend)
	}
	if len(d.Features) == 0 {
		doc.fault(at+".features", "a model needs at least one feature")
	}
	seen := map[string]bool{}
	for i := range d.Features {
		f, fat := &d.Features[i], fmt.Sprintf("%s.features[%d]", at, i)
		checkKind(doc, fat, f.Kind, f.Length)
		if f.Transform == "" {
			f.Transform = TransformNone
		}
		if allowed, ok := featureTransforms[f.Kind]; ok && !slices.Contains(allowed, f.Transform) {
			doc.fault(fat+".transform", "transform %q does not suit a %s; want %s", f.Transform, f.Kind, strings.Join(allowed, " or "))
		}
		if seen[f.Column] {
			doc.fault(fat+".column", "column %s is a feature twice", f.Column)
		}
		if f.Column == d.Target.Column {
			doc.fault(fat+".column", "column %s is the target; a model may not see what it predicts", f.Column)
		}
		seen[f.Column] = true
	}
	d.Target.validate(doc, at+".target", t)
}

func (g *Target) validate(doc *document, at string, t Type) {
	if g.Transform == "" {
		g.Transform = TransformNone
	}
	if g.Column == "" {
		doc.fault(at, "target needs a column")
	}
	allowed := []string{TransformNone, TransformLog1p}
	if t != Regression {
		allowed = []string{TransformNone, TransformBins}
	}
	if !slices.Contains(allowed, g.Transform) {
		doc.fault(at+".transform", "transform %q does not suit a target of %s; want %s", g.Transform, t, strings.Join(allowed, " or "))
	}
	bins := g.Transform == TransformBins
	switch {
	case bins && len(g.Edges) == 0:
		doc.fault(at+".edges", "bins need edges")
	case !bins && len(g.Edges) > 0:
		doc.fault(at+".edges", "edges are for transform bins")
	case !slices.IsSorted(g.Edges) || len(slices.Compact(slices.Clone(g.Edges))) != len(g.Edges):
		doc.fault(at+".edges", "edges must rise")
	}
	switch {
	case bins && len(g.Labels) != len(g.Edges)+1:
		doc.fault(at+".labels", "%d edges make %d classes, but there are %d labels", len(g.Edges), len(g.Edges)+1, len(g.Labels))
	case t == Regression && len(g.Labels) > 0:
		doc.fault(at+".labels", "labels are for classification")
	case t == Anomaly && len(g.Labels) != 2:
		doc.fault(at+".labels", "a model of anomalies needs two labels, the common rows' and the anomalies'; there are %d", len(g.Labels))
	case t == Classification && len(g.Labels) == 1:
		doc.fault(at+".labels", "one label leaves nothing to predict")
	}
	for i, l := range g.Labels {
		if l == "" || slices.Contains(g.Labels[:i], l) {
			doc.fault(at+".labels", "label %q is empty or given twice", l)
		}
	}
}

func (s *Split) validate(doc *document) {
	if !slices.Contains([]string{"time", "random", "group", "files"}, s.Kind) {
		doc.fault("split.kind", "split kind %q; want time, random, group or files", s.Kind)
	}
	if s.Kind == "group" && s.Column == "" {
		doc.fault("split.column", "a split by group needs the column that holds the group")
	}
	sum := 0.0
	for _, f := range s.Fractions {
		if f <= 0 {
			sum = -1
			break
		}
		sum += f
	}
	if len(s.Fractions) != 3 || sum < 0.999999 || sum > 1.000001 {
		doc.fault("split.fractions", "fractions are %v; want three above 0 that add up to 1: train, validation, test", s.Fractions)
	}
}

func (m *Model) validateLadder(doc *document) {
	metrics := map[string]string{}
	for _, d := range m.Datasets {
		maps.Copy(metrics, MetricsOf(m.Type, len(d.Target.Labels)))
	}
	known := strings.Join(sortedKeys(metrics), ", ")
	last := -1
	for i := range m.Lifecycle {
		r, at := &m.Lifecycle[i], fmt.Sprintf("lifecycle[%d]", i)
		place := slices.Index(Aliases, r.Name)
		switch {
		case place < 0:
			doc.fault(at+".name", "rung %q; want %s", r.Name, strings.Join(Aliases, ", "))
		case place <= last:
			doc.fault(at+".name", "rung %s must come once and in the order %s", r.Name, strings.Join(Aliases, ", "))
		}
		last = max(last, place)
		better, ok := metrics[r.Metric]
		if !ok {
			doc.fault(at+".metric", "a model of type %s never yields metric %q; it yields %s", m.Type, r.Metric, known)
			continue
		}
		if r.Direction == "" {
			r.Direction = better
		}
		if r.Direction != better {
			doc.fault(at+".direction", "direction is %q, but of %s the %s is better", r.Direction, r.Metric, better)
		}
	}
	for i, mg := range m.Baseline.Margins {
		at := fmt.Sprintf("baseline.margins[%d]", i)
		if _, ok := metrics[mg.Metric]; !ok {
			doc.fault(at+".metric", "a model of type %s never yields metric %q; it yields %s", m.Type, mg.Metric, known)
		}
		if mg.Relative < 0 || mg.Relative >= 1 || mg.Absolute < 0 || (mg.Relative > 0 && mg.Absolute > 0) {
			doc.fault(at, "a margin is relative (0 to 1) or absolute (0 or more), not both")
		}
	}
	for i, by := range m.Baseline.By {
		if len(by) == 0 {
			doc.fault(fmt.Sprintf("baseline.by[%d]", i), "a grouping needs columns; the median or majority of all rows is always added last")
		}
	}
}

// against checks the columns that the model uses from a data set.
func (m *Model) against(doc *document, i int, ds *Dataset) {
	md := &m.Datasets[i]
	at := fmt.Sprintf("datasets[%d]", i)
	for j, f := range md.Features {
		fat := fmt.Sprintf("%s.features[%d].column", at, j)
		c, ok := ds.Column(f.Column)
		switch {
		case !ok:
			doc.fault(fat, "data set %s has no column %q", ds.Name, f.Column)
		case c.Available == AtEnd:
			doc.fault(fat, "column %s is known only at end; a model may only use what is known at submit", f.Column)
		case c.Type != f.Kind || c.Length != f.Length:
			doc.fault(fat, "column %s is a %s of data set %s, not a %s", f.Column, describeKind(c.Type, c.Length), ds.Name, describeKind(f.Kind, f.Length))
		}
	}
	c, ok := ds.Columns[md.Target.Column]
	switch {
	case !ok:
		doc.fault(at+".target.column", "data set %s has no column %q", ds.Name, md.Target.Column)
	case c.Type == Vector, c.Type == Category && (m.Type == Regression || md.Target.Transform == TransformBins):
		doc.fault(at+".target.column", "target %s is a %s; %s needs a number", md.Target.Column, c.Type, m.Type)
	case c.Type == Number && m.Type == Classification && len(md.Target.Labels) == 0:
		doc.fault(at+".target.labels", "target %s holds numbers; name the classes 0, 1, … by labels, or use transform bins", md.Target.Column)
	}
	for j, by := range m.Baseline.By {
		for _, b := range by {
			if c, ok := ds.Columns[b]; !ok || c.Type == Vector || c.Available != AtSubmit {
				doc.fault(fmt.Sprintf("baseline.by[%d]", j), "the baseline groups by %q, which is no number or category column of %s known at submit", b, ds.Name)
			}
		}
	}
	switch m.Split.Kind {
	case "time":
		name := m.Split.Column
		if name == "" {
			name = ds.Time.Submit
		}
		if c, ok := ds.Columns[name]; !ok || c.Type != Number {
			doc.fault("split.column", "a split by time needs a number column of %s to order by; %q is none", ds.Name, name)
		}
	case "group":
		if c, ok := ds.Columns[m.Split.Column]; !ok || c.Type == Vector {
			doc.fault("split.column", "a split by group needs a number or category column of %s; %q is none", ds.Name, m.Split.Column)
		}
	case "files":
		if ds.Generated() {
			doc.fault("split.kind", "a split by files needs a data set with files; %s is generated", ds.Name)
		}
	}
}

func describeKind(k Kind, length int) string {
	if k == Vector {
		return fmt.Sprintf("vector of %d", length)
	}
	return string(k)
}
