package modelrepo

import "cmp"

// Kind is the type of a column's values.
type Kind string

const (
	// Number is one float per row.
	Number Kind = "number"
	// Category is one string per row.
	Category Kind = "category"
	// Vector is a list of floats of one length per row.
	Vector Kind = "vector"
)

// Type is the task type of a model.
type Type string

const (
	// Regression predicts a number.
	Regression Type = "regression"
	// Classification predicts one of a fixed list of labels.
	Classification Type = "classification"
	// Anomaly separates unusual rows from the rest. The target has two labels, which are used only to evaluate it; the
	// second one is that of the anomalies.
	Anomaly Type = "anomaly"
)

// Transforms of a feature; they are part of the exported graph.
const (
	TransformNone        = "none"
	TransformLog1p       = "log1p"
	TransformStandardize = "standardize"
	TransformOneHot      = "onehot"
	TransformOrdinal     = "ordinal"
	// TransformBins turns a numeric target into classes.
	TransformBins = "bins"
)

// Model is one model.yaml. Defaults are applied, so a 0 or "" below was written by the author.
type Model struct {
	// Name is PascalCase or upper-case; the platform shows it upper-case and the tracker holds it lower-case.
	Name string `yaml:"name"`
	// TaskType is the folder it lies in: one of TaskTypes.
	TaskType string `yaml:"task_type"`
	Type     Type   `yaml:"type"`
	// Enabled is true by default; a disabled model is known but never trained on a schedule.
	Enabled bool   `yaml:"enabled"`
	Project string `yaml:"project"`
	// Tenant owns the model: its policy, rules, history and serving records are of that tenant alone. Empty: default.
	Tenant string `yaml:"tenant"`
	// BusUUID is the model's name on the message bus; empty means it is not on the bus.
	BusUUID string `yaml:"bus_uuid"`
	// Sources are globs, relative to the repository, whose change also touches this model.
	Sources   []string  `yaml:"sources"`
	Estimator Estimator `yaml:"estimator"`
	// Datasets the model can be trained on; the first is the default.
	Datasets []ModelDataset `yaml:"datasets"`
	Split    Split          `yaml:"split"`
	// Baseline is the reference that the model must beat; zero means the median or majority of all rows.
	Baseline  Baseline  `yaml:"baseline"`
	Lifecycle []Rung    `yaml:"lifecycle"`
	Serving   Serving   `yaml:"serving"`
	Schedule  Schedule  `yaml:"schedule"`
	Inference Inference `yaml:"inference"`
	Resources Resources `yaml:"resources"`

	// Backend its data is read from unless a data set names another: the registry's, else local.
	Backend string `yaml:"-"`
	// Dir is the model's folder relative to the repository, with forward slashes.
	Dir string `yaml:"-"`
	// File is the model.yaml that it was read from.
	File SourceFile `yaml:"-"`
}

// DefaultTenant owns what names no other.
const DefaultTenant = "default"

// Owner is the tenant that the model belongs to.
func (m *Model) Owner() string { return cmp.Or(m.Tenant, DefaultTenant) }

// Estimator is the learning algorithm and its settings.
type Estimator struct {
	// Kind is one of Estimators.
	Kind            string         `yaml:"kind"`
	Hyperparameters map[string]any `yaml:"hyperparameters"`
	// Command is the argv that fits an estimator of kind command; the trainer's operator must have listed it.
	Command []string `yaml:"command"`
	// Seed of every random choice; 42 by default. The same seed and data give the same bytes.
	Seed int64 `yaml:"seed"`
}

// ModelDataset is a data set as one model uses it.
type ModelDataset struct {
	Name string `yaml:"name"`
	// Backend the data is read from; empty means the registry's default, then local.
	Backend  string    `yaml:"backend"`
	Target   Target    `yaml:"target"`
	Features []Feature `yaml:"features"`
}

// Feature is one input column of a model.
type Feature struct {
	Column string `yaml:"column"`
	Kind   Kind   `yaml:"kind"`
	// Length of a vector; 0 for other kinds.
	Length    int    `yaml:"length"`
	Transform string `yaml:"transform"`
}

// Target is the column to predict.
type Target struct {
	Column    string `yaml:"column"`
	Transform string `yaml:"transform"`
	// Edges of the bins, ascending; n edges make n+1 classes. A value on an edge belongs to the upper class.
	Edges []float64 `yaml:"edges"`
	// Labels name the classes. Without bins the column must hold 0..len-1.
	Labels []string `yaml:"labels"`
	Unit   string   `yaml:"unit"`
}

// Split defines how rows are divided into train, validation and test.
type Split struct {
	// Kind is time, random, group or files.
	Kind string `yaml:"kind"`
	// Column orders the rows (time) or groups them (group).
	Column string `yaml:"column"`
	// Fractions of train, validation and test; they add up to 1.
	Fractions []float64 `yaml:"fractions"`
	Seed      int64     `yaml:"seed"`
	// AllowDuplicates permits more than 1 % of the test rows to be identical to a row of the other parts.
	AllowDuplicates bool `yaml:"allow_duplicates"`
}

// Baseline is a guess from the recent past that a model has to beat to be worth serving.
type Baseline struct {
	// By lists groupings to try in order; a row whose group is unknown falls to the next, then to all rows.
	By [][]string `yaml:"by"`
	// Margins by which a rung with beats_baseline requires the model to be better.
	Margins []Margin `yaml:"margins"`
}

// Margin is by how much a metric must be better than the same metric of every baseline.
type Margin struct {
	Metric string `yaml:"metric"`
	// Relative is a share of the baseline's value, Absolute an amount of the metric; both zero means better at all.
	Relative float64 `yaml:"relative"`
	Absolute float64 `yaml:"absolute"`
}

// Rung is one step of the ladder to Production.
type Rung struct {
	// Name is the alias: Staging, Canary or Production.
	Name      string  `yaml:"name"`
	Metric    string  `yaml:"metric"`
	Threshold float64 `yaml:"threshold"`
	// Direction is lower or higher: which side of the threshold is good; equal is good too.
	Direction     string `yaml:"direction"`
	BeatsBaseline bool   `yaml:"beats_baseline"`
}

// Serving defines how the model is served.
type Serving struct {
	// ModelID is the lower-case tracker name; default is the lower-case model name.
	ModelID string `yaml:"model_id"`
	// Aliases loaded by the inference service; default all three.
	Aliases []string `yaml:"aliases"`
}

// Schedule is when the model is retrained automatically.
type Schedule struct {
	Cron             string `yaml:"cron"`
	Timezone         string `yaml:"timezone"`
	Enabled          bool   `yaml:"enabled"`
	ConcurrencyLimit int    `yaml:"concurrency_limit"`
}

// Inference holds JSON schemas of one request's features and of the answer. Open derives those that the author left
// out.
type Inference struct {
	InputSchema  map[string]any `yaml:"input_schema"`
	OutputSchema map[string]any `yaml:"output_schema"`
}

// Resources requested from the scheduler.
type Resources struct {
	Nodes int `yaml:"nodes"`
	CPUs  int `yaml:"cpus"`
	GPUs  int `yaml:"gpus"`
	// Mem is a size such as 16G, Time a limit such as 2:00:00.
	Mem  string `yaml:"mem"`
	Time string `yaml:"time"`
}

// Aliases are the rungs in the order in which they are climbed.
var Aliases = []string{"Staging", "Canary", "Production"}

// TaskTypes are the folders under models/.
var TaskTypes = []string{"performance_prediction", "power_consumption_prediction", "anomaly_detection"}

// EstimatorCommand is fitted by a command that the trainer's operator allows.
const EstimatorCommand = "command"

// Estimators this build can train, each with the types it suits.
var Estimators = map[string][]Type{
	"ridge":         {Regression},
	"logistic":      {Classification},
	"random_forest": {Regression, Classification},
	"gbt":           {Regression, Classification},

	"isolation_forest": {Anomaly},

	EstimatorCommand: {Regression, Classification},
}
